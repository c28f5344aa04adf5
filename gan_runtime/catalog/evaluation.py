"""What may be asked of a checkpoint, during training or after it. An evaluation runs as a job and leaves an `Answer` (records/answer.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from gan_runtime.base.fields import Fields
from gan_runtime.base.metrics import Metric
from gan_runtime.base.options import OptionRecord
from gan_runtime.catalog.entries import Options, WorkloadEntry


@dataclass(frozen=True)
class PublishedScore:
    """A score that others have published, for comparison. `source`: paper and table; `what`: the data and the model it was measured on."""

    score: str
    value: float
    error: float | None
    what: str
    source: str


@dataclass(frozen=True)
class Evaluation:
    """One evaluation of trained networks, declared without a framework, so that every process may read it.

    `name`: as stored and as the command line calls it, such as "rollout"; `aliases`: names of older commands for it.
    `title`, `summary`: on its page and in `evaluate --help`; `verb`: on the button that starts it, "Measure showers".
    `options`: its form, command-line options and errors come from this record, as a workload's options do.
    `applies(entry, options, fields)`: "" where a run of that workload, with its options and the fields that it reads, can be
    evaluated so; else the reason, for the greyed button. `fields`: those of the run's data set.
    `scores`: each number that it may give; published values by `published`. `work`: "module:function" of the job, which gets
    (Trained, options, Progress) and returns an Answer. `environment`: variables of its process.
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
    published: tuple[PublishedScore, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
