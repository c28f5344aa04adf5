"""The evaluations that there are, by name: the core's, those of domains, and those of installed
packages. Loads no framework.

Also what a terminal or a script is told of an evaluation that has just been made: sentences and
tables, and a JSON document.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from gan_runtime.base.errors import JobError, quoted
from gan_runtime.catalog.domains import DOMAINS
from gan_runtime.catalog.evaluation import Evaluation
from gan_runtime.catalog.table import Table
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir, answers_of

# Those that are about no science; docs/adding-an-evaluation.md adds one.
CORE: tuple[str, ...] = (
    # "module:NAME" of each
    "gan_runtime.evaluation.surface_options:LOSS_SURFACE",
)


@cache
def evaluations() -> Mapping[str, Evaluation]:
    """Every evaluation by its name, the core's first."""
    places = (*CORE, *(place for domain in DOMAINS for place in domain.evaluations))
    own = {evaluation.name: evaluation for evaluation in map(_declared, places)}
    return Table(own, "gan_runtime.evaluations", Evaluation)


def evaluation(name: str) -> Evaluation:
    """By its name or one of its older names.

    Raises JobError for any other; the message lists them.
    """
    for known in evaluations().values():
        if name in (known.name, *known.aliases):
            return known
    raise JobError(f"{quoted(name)} is no evaluation: there are {', '.join(evaluations())}.")


def _declared(place: str) -> Evaluation:
    module, _, name = place.partition(":")
    declared: Evaluation = getattr(importlib.import_module(module), name)
    return declared


@dataclass(frozen=True)
class Grid:
    """A table of text."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Report:
    """`document`: for JSON. `parts`: for people, from the top."""

    document: Mapping[str, Any]
    parts: Sequence[str | Grid]


Reporting = Callable[[Home, RunDir, Mapping[str, Any]], Report]


def report_of(declared: Evaluation, home: Home, run: RunDir, result: Mapping[str, Any]) -> Report:
    """`result`: what the job gave. Raises JobError when nothing of it is in the run's journals."""
    if not declared.report:
        return of_scores(declared, home, run, result)
    module, _, name = declared.report.partition(":")
    reporting: Reporting = getattr(importlib.import_module(module), name)
    return reporting(home, run, result)


def of_scores(declared: Evaluation, _home: Home, run: RunDir, result: Mapping[str, Any]) -> Report:
    """Every score of the newest answer with its error and its floor.

    Raises JobError without an answer.
    """
    measured = answers_of(run, declared.name)
    if not measured:
        raise JobError(f"the job has written no answer about run {run.run_id}: look into its log.")
    last = measured[-1]
    rows = [
        (
            _title(declared, score.name),
            *(f"{value:.4g}" for value in (score.value, score.error, score.floor)),
        )
        for score in last.scores
    ]
    document = {
        "run_id": run.run_id,
        "evaluation": declared.name,
        **result,
        "scores": [score.model_dump() for score in last.scores],
    }
    sentence = f"{declared.title} of {run.run_id} after epoch {last.epoch} ({last.checkpoint}):"
    return Report(document, [sentence, Grid(("Score", "Value", "Error", "Floor"), rows)])


def _title(declared: Evaluation, score: str) -> str:
    """A score is declared under its name, or with the name of its evaluation before it."""
    titles = (
        metric.title
        for metric in declared.scores
        if metric.name in (score, f"{declared.name}_{score}")
    )
    return next(titles, score)
