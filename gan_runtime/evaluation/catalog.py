"""The contract between an evaluation, its job and the command line. Loads no framework."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gan_runtime.base.errors import JobError
from gan_runtime.base.importing import loaded
from gan_runtime.base.metrics import of_score
from gan_runtime.catalog.evaluation import Evaluation
from gan_runtime.data.contract import Progress
from gan_runtime.records.answer import Answer
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir, answers_of


@dataclass(frozen=True)
class Subject:
    """The input of an evaluation's work function.

    `options`: the evaluation's option record. `key`: the job's id, for the answers. `results`: a
    folder for files that stay with the job. `progress(done, total, sentence)`: raises when a user
    has cancelled. `publish(answer)`: stores an answer at once, so that it survives if the job ends
    early.
    """

    home: Home
    run: RunDir
    options: Any
    key: str
    results: Path
    progress: Progress
    publish: Callable[[Answer], None]


@dataclass(frozen=True)
class EvaluationResult:
    """The return value of an evaluation's work function.

    `answers`: those not published yet; the run's journal gets all of them or none. `result`: a
    small JSON document, such as warnings. `files`: files in the run's folder that the answers name.
    """

    answers: Sequence[Answer]
    result: Mapping[str, Any] = field(default_factory=dict)
    files: tuple[Path, ...] = ()


@dataclass(frozen=True)
class TextTable:
    """A table in a report."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class EvaluationReport:
    """A report. `document`: for JSON output. `parts`: texts and tables for the terminal, from the
    top.
    """

    document: Mapping[str, Any]
    parts: Sequence[str | TextTable]


Reporter = Callable[[Home, RunDir, Mapping[str, Any]], EvaluationReport]


def report_of(
    declared: Evaluation, home: Home, run: RunDir, result: Mapping[str, Any]
) -> EvaluationReport:
    """The report of an evaluation. `result`: the job's document. Raises JobError if the run's
    journal has no answer.
    """
    if not declared.report:
        return report_of_scores(declared, run, result)
    reporter: Reporter = loaded(declared.report)
    return reporter(home, run, result)


def report_of_scores(
    declared: Evaluation, run: RunDir, result: Mapping[str, Any]
) -> EvaluationReport:
    """Every score of the newest answer with its error, its floor and, if available, its 95%
    interval; and what the answer says about itself.

    Raises JobError without an answer.
    """
    answers = answers_of(run, declared.name)
    if not answers:
        raise JobError(f"the job wrote no answer about run {run.run_id}: check the job's log.")
    newest = answers[-1]
    columns = ["value", "error", "floor"]
    if any(math.isfinite(score.low) for score in newest.scores):
        columns = ["value", "low", "high", "floor", "ceiling"]
    rows = [
        (
            score_title(declared, score.name),
            *(f"{getattr(score, column):.4g}" for column in columns),
        )
        for score in newest.scores
    ]
    document = {
        "run_id": run.run_id,
        "evaluation": declared.name,
        **result,
        "facts": newest.facts,
        "scores": [score.model_dump() for score in newest.scores],
    }
    sentence = f"{declared.title} of {run.run_id} after epoch {newest.epoch} ({newest.checkpoint}):"
    titles = {"floor": "Real", "ceiling": "Noise"}
    table = TextTable(
        ("Score", *(titles.get(column, column.capitalize()) for column in columns)), rows
    )
    facts = ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in newest.facts.items()
        if name != "warning" and isinstance(value, str | int | float)
    )
    return EvaluationReport(document, [sentence, table, *([f"{facts}."] if facts else [])])


def score_title(declared: Evaluation, score: str) -> str:
    """The title of a score; an undeclared one has its name."""
    metric = of_score(declared.scores, score)
    return metric.title if metric else score
