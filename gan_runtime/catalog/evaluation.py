"""The declaration of an evaluation: a background job that measures a checkpoint and stores its
answer (records/answer.py).

Loads no framework and no NumPy, so every process can read it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gan_runtime.base.fields import Fields
from gan_runtime.base.metrics import Metric
from gan_runtime.base.options import OptionRecord
from gan_runtime.catalog.entries import Options, WorkloadEntry
from gan_runtime.catalog.facts import ANY_FACTS, FactTypes


@dataclass(frozen=True)
class PublishedScore:
    """A published score, for comparison. `source`: paper and table; `what`: data and model."""

    score: str
    value: float
    error: float | None
    what: str
    source: str


@dataclass(frozen=True)
class WhileTraining:
    """How the owner of a home requests an evaluation of each run that trains.

    `every`: the run's option with the number of epochs between two measurements, 0 for none. The
    evaluation's own option `while_training` gets this number. `options(home, run)`: its other
    options.
    """

    every: str
    options: Callable[[Any, Any], Mapping[str, Any]]


@dataclass(frozen=True)
class Evaluation:
    """One evaluation of trained networks, declared without a framework.

    `name`: as stored and on the command line, such as "rollout"; `earlier_jobs`: names of its jobs
    in earlier versions. `title`, `summary`: on its page
    and in `evaluate --help`; `verb`: on its button, such as "Measure"; `busy`: the refusal while
    run {run_id} is being evaluated; `stored`: what is left of an evaluation that did not finish.

    `options`: the record of its form, command-line options and errors. Requests with an option
    `checkpoint` (newest, best, every) or `epoch` that the run lacks are refused. `usual(home,
    run)`: defaults of options that depend on the run. `applies(entry, options, fields)`: "" if runs
    of that workload, options and data set can be evaluated, else the reason, for the disabled
    button. `lacking(home, run)`: "" if the run can be evaluated in its current state, else the
    reason. `check(home, run, options)`: raises other errors of a request. `needs_checkpoint`: if
    false, it reads the run's folder in any state.

    `scores`: the numbers that it may give, `published`: values of others. `facts`: types of the
    facts of its answers; `defining_facts`: with other values of these, scores are not comparable;
    `caution`: what the fact `warning` is about, where there is space for a few words only.
    `work`: a function, or "module:function", that the job calls with a `Subject` and that returns
    an `EvaluationResult` (evaluation/jobs.py). `environment`: variables of its process.
    `while_training`: how it measures runs that train; default: only when a user asks.

    `verdict`: "module:function" from a `MeasuredAnswer` to an `AnswerVerdict` or None
    (training/verdict.py); default: by the floors of its scores. `report`: "module:function" that
    prints the result in a terminal (evaluation/catalog.py); default: the scores. `page`:
    "module:NAME" of what it adds to its page (dashboard/evaluation/answers.py). `files`: yes-or-no
    options whose result file has this name; the command line copies it to a path.
    """

    name: str
    title: str
    summary: str
    verb: str
    options: type[OptionRecord]
    applies: Callable[[WorkloadEntry, Options, Fields], str]
    scores: tuple[Metric, ...]
    work: str | Callable[[Any], Any]
    earlier_jobs: tuple[str, ...] = ()
    busy: str = ""
    stored: str = "nothing was stored"
    usual: Callable[[Any, Any], Mapping[str, Any]] = lambda _home, _run: {}
    lacking: Callable[[Any, Any], str] = lambda _home, _run: ""
    check: Callable[[Any, Any, Any], None] = lambda _home, _run, _options: None
    needs_checkpoint: bool = True
    published: tuple[PublishedScore, ...] = ()
    facts: FactTypes = ANY_FACTS
    defining_facts: tuple[str, ...] = ()
    caution: str = "with a warning"
    while_training: WhileTraining | None = None
    verdict: str = ""
    page: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    report: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
