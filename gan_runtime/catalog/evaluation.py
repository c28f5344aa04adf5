"""The declaration of an evaluation: a background job that measures a checkpoint and stores its
result (records/answer.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gan_runtime.base.fields import Fields
from gan_runtime.base.metrics import Metric
from gan_runtime.base.options import OptionRecord
from gan_runtime.catalog.entries import Options, WorkloadEntry


@dataclass(frozen=True)
class PublishedScore:
    """A published score, for comparison. `source`: paper and table; `what`: data and model."""

    score: str
    value: float
    error: float | None
    what: str
    source: str


@dataclass(frozen=True)
class Evaluation:
    """One evaluation of trained networks, declared without a framework.

    `name`: as stored and on the command line, such as "rollout"; `aliases`: names of older
    commands; `earlier_jobs`: names of its jobs in earlier versions. `title`, `summary`: on its page
    and in `evaluate --help`; `verb`: on its button, such as "Measure"; `busy`: the refusal while
    run {run_id} is being evaluated; `stored`: what is left of an evaluation that did not finish.

    `options`: the record of its form, command-line options and errors. Requests with an option
    `checkpoint` (newest, best, every) or `epoch` that the run lacks are refused. `usual(home,
    run)`: defaults of options that depend on the run. `applies(entry, options, fields)`: "" if runs
    of that workload, options and data set can be evaluated, else the reason, for the disabled
    button. `lacking(home, run)`: "" if the run can be evaluated in its current state, else the
    reason. `check(home, run, options)`: raises other errors of a request. `needs_checkpoint`: if
    false, it reads the run's folder in any state.

    `scores`: the numbers that it may give, `published`: values of others. `work`: "module:function"
    that the job calls with a `Subject` and that returns an `EvaluationResult` (evaluation/jobs.py).
    `environment`: variables of its process. `report`: "module:function" that prints the result in a
    terminal (evaluation/catalog.py); default: the scores. `files`: yes-or-no options whose result
    file has this name; the command line copies it to a path.
    """

    name: str
    title: str
    summary: str
    verb: str
    options: type[OptionRecord]
    applies: Callable[[WorkloadEntry, Options, Fields], str]
    scores: tuple[Metric, ...]
    work: str
    aliases: tuple[str, ...] = ()
    earlier_jobs: tuple[str, ...] = ()
    busy: str = ""
    stored: str = "nothing was stored"
    usual: Callable[[Any, Any], Mapping[str, Any]] = lambda _home, _run: {}
    lacking: Callable[[Any, Any], str] = lambda _home, _run: ""
    check: Callable[[Any, Any, Any], None] = lambda _home, _run, _options: None
    needs_checkpoint: bool = True
    published: tuple[PublishedScore, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    report: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
