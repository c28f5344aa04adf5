"""What may be asked of a checkpoint, during training or after it.

An evaluation runs as a job and leaves an `Answer` (records/answer.py).
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
    """A score that others have published, for comparison.

    `source`: paper and table; `what`: the data and the model it was measured on.
    """

    score: str
    value: float
    error: float | None
    what: str
    source: str


@dataclass(frozen=True)
class Evaluation:
    """One evaluation of trained networks, declared without a framework, so that every process may
    read it.

    `name`: as stored and as the command line calls it, such as "rollout"; `aliases`: names of older
    commands for it;
    `earlier_jobs`: names that its jobs had in earlier versions. `title`, `summary`: on its page and
    in `evaluate --help`;
    `verb`: on the button that starts it, such as "Measure"; `busy`: of a run {run_id} that is being
    evaluated already.
    `options`: its form, command-line options and errors come from this record, as a workload's
    options do. Of an option `checkpoint` (newest, best, every) or `epoch` that is not there the
    request is refused, in the same words for all. `usual(home, run)`: values of options where
    nobody says them, by name, such as as many steps as a data set has. `applies(entry, options,
    fields)`: "" where a run of that workload, with its options and the fields that it reads, can be
    evaluated so; else the reason, for the greyed button. `fields`: those of the run's data set.
    `lacking(home, run)`: "" where the run as it is now can be evaluated; else the reason.
    `check(home, run, options)` raises what else is wrong with a request. `needs_checkpoint`: else
    it works on what lies in the run's folder, in any state.
    `scores`: each number that it may give; published values by `published`. `work`:
    "module:function" of the job's process, which gets a `Subject` and gives an `Evaluated`
    (evaluation/work.py). `environment`: variables of its process.
    `report`: "module:function" of what a terminal prints (evaluation/catalog.py), its scores by
    default. `files`: options of yes or no by which a file of this name is among the job's results;
    the command line copies it to a path.
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
    usual: Callable[[Any, Any], Mapping[str, Any]] = lambda _home, _run: {}
    lacking: Callable[[Any, Any], str] = lambda _home, _run: ""
    check: Callable[[Any, Any, Any], None] = lambda _home, _run, _options: None
    needs_checkpoint: bool = True
    published: tuple[PublishedScore, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    report: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
