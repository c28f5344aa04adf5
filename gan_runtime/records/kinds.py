"""The kinds of records (RECORDS): decisions about a run and its attempts (DECIDED) are declared
here, measurements of a trainer in measured.py.

A record validates itself when it is created or read. Times are UTC.
"""

from __future__ import annotations

import contextlib
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from gan_runtime.catalog.facts import Facts
from gan_runtime.records.answer import Answer
from gan_runtime.records.earlier_records import EARLIER
from gan_runtime.records.measured import MEASURED
from gan_runtime.records.record import (
    MAX_METRICS,
    MAX_TEXT,
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
from gan_runtime.records.run_files import source
from gan_runtime.records.states import STAGES, Cause, Reason, Standing, Status, cause_of
from gan_runtime.spec import nesting

Level = Literal["info", "warning", "error"]
Condition = Literal["ended", "finished"]
_CODES = frozenset(Reason)


class StudyPlace(BaseModel):
    """The position of a run in its study: the variant (its label, and its index from 0) and the
    repeat (from 1).

    `question`: a key of studies/design.py. Every run of a study stores it, so a study exists as
    long as any of its runs.
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

    `accelerator`: resolved, never "auto". `color`: index in the run palette. `preset`: "" without a
    preset. `images_per_step`: training images of one step; None in old runs, or if unknown.
    `asker`: the actor, such as "dashboard"; empty in old records, here and below.
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
    """The run changed its state.

    `code`, `details`: the cause, for decisions. `reason`: the same as a sentence. If the journal
    has no code of this version, as in version 0.2.0, the code is derived from the sentence.
    `queue_rank`: order of waiting runs. `waits_for`: the job that prepares the data set of a
    waiting run, or empty. `after`, `after_if`: the run that must end or finish before this one
    starts. `asker`: the actor of a resume or a change of the queue.
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
        reason = cause_of(words[:MAX_TEXT])
        if reason is None:
            return {**values, "code": None}
        return {**values, "code": reason.code, "details": dict(reason.details)}

    @classmethod
    def of(cls, status: Status, why: Cause, **fields: Any) -> StatusChange:
        """A change of state with a cause. `fields`: the remaining fields."""
        return cls(
            status=status, code=why.code, details=dict(why.details), reason=why.sentence, **fields
        )

    @property
    def cause(self) -> Cause | None:
        """The cause, for decisions; None without a code."""
        return None if self.code is None else Cause(self.code, self.details)

    def standing(self, journal_name: str, place: int) -> Standing:
        """Its order among a run's states without clocks: attempt, stage, journal, place."""
        return (self.attempt, STAGES[self.status], source(journal_name), place)

    def because(self, why: Cause, **fields: Any) -> StatusChange:
        """A change to the same state for another cause. `fields`: other changes."""
        reason = {"code": why.code, "details": dict(why.details), "reason": why.sentence}
        return self.model_copy(update={**reason, "at": now(), **fields})


class Changed(Record):
    """A resume changed some options: `spec` holds all options from this attempt on."""

    tables = (
        RowTable(
            "changes", ("attempt", Column("spec", lambda changed, _: _flat(changed.spec), "JSON"))
        ),
    )
    kind: Literal["changed"] = "changed"
    spec: Options


class Renamed(Record):
    """The run was renamed."""

    tables = (RowTable("names", (Column("renamed_at", "at"), "name", "place")),)
    kind: Literal["renamed"] = "renamed"
    name: Name
    asker: Label = ""


class Marked(Record):
    """Tags, a note or a flag of the run changed. None means unchanged.

    `pinned`: first in lists, and protected from deletion. `hidden`: left out of lists.
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
    facts: Annotated[
        Document, AfterValidator(lambda facts: _typed(facts)), Sharing.PROSE, Private("hostname")
    ]


class AttemptStart(Record):
    """An attempt started from the state after `resume_step`; older measurements beyond that step
    are void.
    """

    author = Author.WORKER
    kind: Literal["attempt"] = "attempt"
    resume_step: Step


class AttemptPlan(Record):
    """The size of the attempt: images of the data set, steps per epoch, and epochs.

    `images_per_step`: training images per step, 0 in old journals. `updates`: updates per step, by
    network.
    """

    tables = (RowTable("plans", ("attempt", "images", "steps_per_epoch", "epochs")),)
    kind: Literal["plan"] = "plan"
    images: Count
    steps_per_epoch: Step
    epochs: Step
    images_per_step: Count = 0
    updates: dict[Name, Count] = Field(default_factory=dict, max_length=MAX_METRICS)


class Event(Record):
    """A message for the user, such as a warning."""

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


class _HostTypes(Facts):
    """Types of the facts that pages, reports and SQL read."""

    cpu_model: str | None = None
    cores: Rank | None = None
    memory_bytes: float | None = None
    devices: list[str] = Field(default_factory=list)
    data_content: str = ""


def _typed(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts without those of another type."""
    kept = {}
    for name, fact in facts.items():
        with contextlib.suppress(ValueError):
            _HostTypes.check({name: fact})
            kept[name] = fact
    return kept


def _flat(spec: dict[str, Any]) -> dict[str, Any]:
    return nesting.flat(spec)


def _study(place: StudyPlace | None) -> dict[str, Any] | None:
    return place.model_dump() if place else None


def _images(created: Created) -> int | None:
    return created.images_per_step or nesting.images_per_step(created.spec) or None


DECIDED: tuple[type[Record], ...] = (
    *(Created, StatusChange, Changed, Renamed, Marked, HostFacts, AttemptStart, AttemptPlan, Event),
)
RECORDS: tuple[type[Record], ...] = (*DECIDED, *MEASURED, Answer, *EARLIER)
