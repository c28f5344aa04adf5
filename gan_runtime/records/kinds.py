"""What stands in the journals: one kind of record for each thing that a run, its trainer or its owner tells. Times are UTC.

A record checks itself when it is made or read: what the store or a page could not take never gets past here. Here is what is
decided about a run; what its trainer measures stands in measured.py.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from gan_runtime.records.answer import Answer
from gan_runtime.records.columns import Count, Details, Kind, Label, Name, Options, Rank, Remark, Tags, Text
from gan_runtime.records.entry import Entry, now
from gan_runtime.records.flow import Flow
from gan_runtime.records.measured import (
    AttemptStart,
    EpochDone,
    EpochScores,
    Histogram,
    HostFacts,
    Kernels,
    Memory,
    Phase,
    Plan,
    Profile,
    Sample,
    Scalars,
    Surface,
    WorkerTimes,
)
from gan_runtime.records.physics import Physics
from gan_runtime.records.reasons import Cause, Reason, cause_of
from gan_runtime.records.states import Status

Level = Literal["info", "warning", "error"]
Condition = Literal["ended", "finished"]
_CODES = frozenset(Reason)


class StudyPlace(BaseModel):
    """A run's place in its study: which variant (in words, and as a number from 0), which repeat (from 1).

    `question`: a key of studies/questions.py. All runs of a study say the same of it, so that it lives as long as one of them.
    """

    model_config = ConfigDict(frozen=True)
    study_id: Name
    question: Name
    title: Label
    variant: Label
    variant_index: Rank
    repeat: Rank


class Created(Entry):
    """A run was submitted. `accelerator` is the resolved one, `color` its index in the run palette, `preset` may be empty.

    `images_per_step`: real images of one step; None in a run from before it was written. `asker`: who asked for it, such as
    "dashboard"; empty where nobody wrote it down, here and below.
    """

    kind: Literal["created"] = "created"
    spec: Options
    accelerator: Kind
    color: Rank
    preset: Label = ""
    study: StudyPlace | None = None
    images_per_step: Count | None = None
    asker: Label = ""


class StatusChange(Entry):
    """The run passed into another state. `code` with `details`: why, for decisions; `reason`: the same in words, for people. A journal of
    0.2.0 has the words only, and a later version may have a code that is not in this one: then `code` is what the words mean, if anything.

    `queue_rank` orders waiting runs; `waits_for`: the job that prepares the data set of a waiting run, empty when the data is at hand;
    `after`: the run that must have ended before a waiting run starts, or finished, as `after_if` says; `asker`: of a resume or a change of
    the queue."""

    kind: Literal["status"] = "status"
    status: Status
    reason: Text = ""
    code: Reason | None = None
    details: Details = Field(default_factory=dict)
    queue_rank: float | None = None
    waits_for: Name = ""
    after: Name = ""
    after_if: Condition = "ended"
    asker: Label = ""

    @model_validator(mode="before")
    @classmethod
    def _with_code_and_words(cls, values: Any) -> Any:
        if not isinstance(values, dict) or not isinstance(words := values.get("reason", ""), str):
            return values
        code, details = values.get("code"), values.get("details") or {}
        if isinstance(code, str) and code in _CODES:
            return values if words else {**values, "reason": Cause(Reason(code), details).sentence}
        meant = cause_of(words)
        if meant is None:
            return {**values, "code": None}
        return {**values, "code": meant.code, "details": dict(meant.details)}

    @classmethod
    def of(cls, status: Status, why: Cause, **fields: Any) -> StatusChange:
        """`fields`: the others."""
        return cls(status=status, code=why.code, details=dict(why.details), reason=why.sentence, **fields)

    @property
    def cause(self) -> Cause | None:
        """Why, for decisions; None where no code says it."""
        return None if self.code is None else Cause(self.code, self.details)

    def because(self, why: Cause, **fields: Any) -> StatusChange:
        """The same state from now on, for another reason; `fields`: what else changes."""
        words = {"code": why.code, "details": dict(why.details), "reason": why.sentence}
        return self.model_copy(update={**words, "at": now(), **fields})


class Changed(Entry):
    """A person resumed the run with other values of some options: from this attempt on it has the options in `spec`."""

    kind: Literal["changed"] = "changed"
    spec: Options


class Renamed(Entry):
    """A person gave the run another name."""

    kind: Literal["renamed"] = "renamed"
    name: Name
    asker: Label = ""


class Marked(Entry):
    """A person put the run in order: what is not None is so from now on. `remark`: a note of theirs, may be empty; `pinned`: first in
    lists, and not to be deleted; `hidden`: not in lists."""

    kind: Literal["marked"] = "marked"
    tags: Tags | None = None
    remark: Remark | None = None
    pinned: bool | None = None
    hidden: bool | None = None
    asker: Label = ""


class Event(Entry):
    """Something worth telling a person."""

    kind: Literal["event"] = "event"
    level: Level
    topic: Name
    message: Text


Record = (
    Created
    | StatusChange
    | Changed
    | Renamed
    | Marked
    | HostFacts
    | AttemptStart
    | Plan
    | Scalars
    | WorkerTimes
    | EpochDone
    | EpochScores
    | Histogram
    | Sample
    | Profile
    | Memory
    | Phase
    | Kernels
    | Answer
    | Surface
    | Physics
    | Flow
    | Event
)
