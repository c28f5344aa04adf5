"""The work of every evaluation's job: its own function is given a run and options, and its
answers go into the run's journal.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gan_runtime.data.contract import Progress
from gan_runtime.evaluation.catalog import evaluation
from gan_runtime.evaluation.requests import EvaluationRequest
from gan_runtime.jobs.task import Task
from gan_runtime.records import journal
from gan_runtime.records.answer import Answer
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir


@dataclass(frozen=True)
class Subject:
    """What an evaluation's work is given.

    `options`: its record. `key`: the job's name, for the answers. `results`: a folder for files
    that stay with the job. `progress(done, total, sentence)` raises when somebody has cancelled.
    """

    home: Home
    run: RunDir
    options: Any
    key: str
    results: Path
    progress: Progress


@dataclass(frozen=True)
class Evaluated:
    """`answers`: all or none of them go into the journal of the run's evaluations.

    `files`: those that they name, in the run's folder by then. `result`: a small document for
    whoever asked, such as warnings.
    """

    answers: Sequence[Answer]
    result: Mapping[str, Any] = field(default_factory=dict)
    files: tuple[Path, ...] = ()


Work = Callable[[Subject], Evaluated]


def evaluate(task: Task) -> dict[str, Any]:
    """Options: those of an `EvaluationRequest`.

    Raises what the evaluation's work raises, and UnknownRunError.
    """
    asked = EvaluationRequest(**task.options)
    declared, run = evaluation(asked.evaluation), task.home.run_dir(asked.run_id)
    module, _, name = declared.work.partition(":")
    work: Work = getattr(importlib.import_module(module), name)
    key = task.results.parent.name
    subject = Subject(task.home, run, asked.chosen, key, task.results, task.progress)
    evaluated = work(subject)
    task.past_cancelling()
    keep(run, evaluated)
    return dict(evaluated.result)


def keep(run: RunDir, evaluated: Evaluated) -> None:
    """Files lie there already; then come the records that name them: all of them or none.

    Raises:
        HomeError: the disk is full; no file is left.
    """
    try:
        journal.append(run.evaluations_journal, 1, *evaluated.answers)
    except BaseException:
        for path in evaluated.files:
            path.unlink(missing_ok=True)
        raise
    run.announce()
