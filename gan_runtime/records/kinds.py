"""The kinds of records: RECORDS lists them all. Here is what is decided about a run and its
attempts, in DECIDED; what its trainer measures is in measured.py.

A record checks itself when it is made or read: what the store or a page could not take never gets
past here. Times are UTC.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from gan_runtime.records.answer import Answer
from gan_runtime.records.earlier_kinds import EARLIER
from gan_runtime.records.measured import MEASURED
from gan_runtime.records.reasons import Cause, Reason, cause_of
from gan_runtime.records.record import (
    MAX_METRICS,
    Author,
    Column,
    Count,
    Details,
    Document,
    Kind,
    Label,
    Name,
    Options,
    Private,
    Rank,
    Record,
    Remark,
    RowTable,
    Sharing,
    Step,
    Tags,
    Text,
    now,
)
from gan_runtime.records.states import STAGES, Status, source
from gan_runtime.spec import nesting

Level = Literal["info", "warning", "error"]
Condition = Literal["ended", "finished"]
_CODES = frozenset(Reason)


class StudyPlace(BaseModel):
    """A run's place in its study: which variant (in words, and as a number from 0), which repeat
    (from 1).

    `question`: a key of studies/questions.py. All runs of a study say the same of it, so that it
    lives as long as one of them.
    """

    model_config = ConfigDict(frozen=True)
    study_id: Name
    question: Name
    title: Label
    variant: Label
    variant_index: Rank
    repeat: Rank


class Created(Record):
    """A run was submitted.

    `accelerator` is the resolved one, `color` its index in the run palette, `preset` may be empty.

    `images_per_step`: real images of one step; None in a run from before it was written. `asker`:
    who asked for it, such as "dashboard"; empty where nobody wrote it down, here and below.
    """

    author = Author.SUBMISSION
    tables = (
        RowTable(
            "created",
            (
                *(
                    Column("created_at", "at"),
                    Column("spec", lambda created, _: _flat(created.spec), "JSON"),
                    "accelerator",
                    "color",
                    "preset",
                ),
                *(
                    Column("study", lambda created, _: _study(created.study), "JSON"),
                    Column("images_per_step", lambda created, _: _images(created), "BIGINT"),
                ),
            ),
        ),
    )
    views = ("runs",)
    kind: Literal["created"] = "created"
    spec: Options
    accelerator: Kind
    color: Rank
    preset: Label = ""
    study: StudyPlace | None = None
    images_per_step: Count | None = None
    asker: Label = ""


class StatusChange(Record):
    """The run passed into another state.

    `code` with `details`: why, for decisions; `reason`: the same in words, for people. A journal of
    0.2.0 has the words only, and a later version may have a code that is not in this one: then
    `code` is what the words mean, if anything.

    `queue_rank` orders waiting runs; `waits_for`: the job that prepares the data set of a waiting
    run, empty when the data is at hand;
    `after`: the run that must have ended before a waiting run starts, or finished, as `after_if`
    says; `asker`: of a resume or a change of the queue.
    """

    tables = (
        RowTable(
            "statuses",
            (
                *(
                    "attempt",
                    Column("changed_at", "at"),
                    "status",
                    "reason",
                    Column("code", lambda change, _: change.code and change.code.value, "VARCHAR"),
                ),
                "queue_rank",
                Column("stage", lambda change, _: STAGES[change.status], "INTEGER"),
                Column("source", lambda _, origin: source(origin.journal), "INTEGER"),
                "place",
            ),
        ),
    )
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
        return cls(
            status=status, code=why.code, details=dict(why.details), reason=why.sentence, **fields
        )

    @property
    def cause(self) -> Cause | None:
        """Why, for decisions; None where no code says it."""
        return None if self.code is None else Cause(self.code, self.details)

    def because(self, why: Cause, **fields: Any) -> StatusChange:
        """The same state from now on, for another reason; `fields`: what else changes."""
        words = {"code": why.code, "details": dict(why.details), "reason": why.sentence}
        return self.model_copy(update={**words, "at": now(), **fields})


class Changed(Record):
    """A person resumed the run with other values of some options: from this attempt on it has
    the options in `spec`.
    """

    tables = (
        RowTable(
            "changes", ("attempt", Column("spec", lambda changed, _: _flat(changed.spec), "JSON"))
        ),
    )
    kind: Literal["changed"] = "changed"
    spec: Options


class Renamed(Record):
    """A person gave the run another name."""

    tables = (RowTable("names", (Column("renamed_at", "at"), "name", "place")),)
    kind: Literal["renamed"] = "renamed"
    name: Name
    asker: Label = ""


class Marked(Record):
    """A person put the run in order: what is not None is so from now on.

    `remark`: a note of theirs, may be empty; `pinned`: first in lists, and not to be deleted;
    `hidden`: not in lists.
    """

    author = Author.SUPERVISOR
    tables = (RowTable("marks", ("tags", "remark", "pinned", "hidden", "place")),)
    kind: Literal["marked"] = "marked"
    tags: Tags | None = None
    remark: Remark | None = None
    pinned: Annotated[bool | None, Sharing.HOME] = None
    hidden: Annotated[bool | None, Sharing.HOME] = None
    asker: Label = ""


class HostFacts(Record):
    """The machine and software of an attempt."""

    tables = (RowTable("hosts"),)
    kind: Literal["host"] = "host"
    facts: Annotated[Document, Sharing.PROSE, Private("hostname")]


class AttemptStart(Record):
    """An attempt goes on after `resume_step`; what earlier attempts measured beyond it is void."""

    author = Author.WORKER
    kind: Literal["attempt"] = "attempt"
    resume_step: Step


class Plan(Record):
    """What the attempt will do: images in the set, steps in an epoch, epochs.

    `images_per_step`: real ones that a step takes; `updates`: how often it changes each network.
    Old journals do not say: 0, {}.
    """

    tables = (RowTable("plans", ("attempt", "images", "steps_per_epoch", "epochs")),)
    kind: Literal["plan"] = "plan"
    images: Count
    steps_per_epoch: Step
    epochs: Step
    images_per_step: Count = 0
    updates: dict[Name, Count] = Field(default_factory=dict, max_length=MAX_METRICS)


class Event(Record):
    """Something worth telling a person."""

    tables = (
        RowTable(
            "events",
            ("attempt", Column("logged_at", "at"), "level", Column("kind", "topic"), "message"),
        ),
    )
    views = ("events",)
    kind: Literal["event"] = "event"
    level: Level
    topic: Name
    message: Text


def _flat(spec: dict[str, Any]) -> dict[str, Any]:
    return nesting.flat(spec)


def _study(place: StudyPlace | None) -> dict[str, Any] | None:
    return place.model_dump() if place else None


def _images(created: Created) -> int | None:
    return created.images_per_step or nesting.images_per_step(created.spec)


DECIDED: tuple[type[Record], ...] = (
    *(Created, StatusChange, Changed, Renamed, Marked, HostFacts, AttemptStart, Plan, Event),
)
RECORDS: tuple[type[Record], ...] = (*DECIDED, *MEASURED, Answer, *EARLIER)
