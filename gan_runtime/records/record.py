"""Records: one line of a journal, declared once. Times are UTC.

The fields, with types and limits, give the line. The class declares whose journal may contain it,
its tables and columns, and which of them are series, public views or exported. Marks on field types
say what a bundle leaves out. Reader, tables, ingest, export and bundles follow these declarations.

The types of fields come first. Bounds leave room for sums and products in SQL: a count of images
times a batch stays within BIGINT.

The actors are last. An operator starts, stops and deletes; a viewer, the default, only reads.
Records store the actor's name, which says where a change came from ("dashboard"). The signed-in
user appears only in the process log, so no bundle contains that name.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, StrEnum
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from gan_runtime.spec import RunSpec, nesting

# Control characters except the newline, marks of writing direction, surrogates.
_UNSEEN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
MAX_TAGS, MAX_REMARK = 20, 2_000
MAX_NAME, MAX_TEXT, MAX_DOCUMENT = 200, 10_000, 100_000  # characters
MAX_METRICS = 1_000  # per record
MOST_STEPS = 10_000  # of an evaluation that predicts step by step
TAG = r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,38}[A-Za-z0-9._-]$|^[A-Za-z0-9]$"
YEARS = (1970, 2200)  # pandas counts nanoseconds, up to 2262
# Pages divide by some of these options, and group and name runs by the others.
NEEDED = ("workload", "dataset", "precision", "replicas", "batch_size_global", "epochs", "seed")


def _utc(moment: datetime) -> datetime:
    """The time in UTC; a time without a zone is taken as UTC."""
    if not YEARS[0] <= moment.year < YEARS[1]:
        raise ValueError(f"the year must be from {YEARS[0]} to {YEARS[1] - 1}")
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _document(value: dict[str, Any]) -> dict[str, Any]:
    # Raises ValueError for values without a JSON form, such as an integer of 5,000 digits.
    text = json.dumps(value)
    if len(text) > MAX_DOCUMENT:
        raise ValueError(f"it has more than {MAX_DOCUMENT:,} characters")
    return value


def _options(values: dict[str, Any]) -> dict[str, Any]:
    """Checks the options of a run; options unknown to this version can have any value."""
    absent = [name for name in NEEDED if name not in values]
    if absent:
        raise ValueError(f"{absent[0]} is missing")
    flat = nesting.flat(values)
    for name, option in RunSpec.options(nesting.workload_of(values)).items():
        if name in flat and not _fits(flat[name], option.kind, option.minimum, option.maximum):
            raise ValueError(f"{name} is not {option.allowed}")
    return _document(values)


def _fits(value: Any, kind: type, minimum: float | None, maximum: float | None) -> bool:
    """Whether a value has the right type and range. Any choice is valid, since choices change with
    versions.
    """
    if kind is str:
        return isinstance(value, str) and len(value) <= MAX_NAME
    if isinstance(value, bool) or not isinstance(value, int if kind is int else (int, float)):
        return False
    if kind is float:
        return math.isfinite(value)
    return (minimum is None or minimum <= value) and (maximum is None or value <= maximum)


def _remark(text: str) -> str:
    """Checks that a text has no invisible characters."""
    if _UNSEEN.search(text):
        raise ValueError("it contains invisible characters")
    return text


def _cut_at(most: int) -> AfterValidator:
    """A validator that shortens texts of the program, such as the reason of a failure."""
    return AfterValidator(lambda text: text if len(text) <= most else f"{text[: most - 1]}…")


def _tags(tags: list[str]) -> list[str]:
    """The tags in order, without duplicates."""
    return list(dict.fromkeys(tags))


class Sharing(Enum):
    """Marks fields by what a bundle leaves out of them, in addition to names of folders."""

    PROSE = "text without names of hosts and addresses"
    OPTIONS = "options without the address of a TPU"
    HOME = "nothing: it belongs to this home"


@dataclass(frozen=True)
class Private:
    """Marks a document: a bundle leaves out the entry of this name."""

    name: str


UtcTime = Annotated[datetime, AfterValidator(_utc)]
Attempt = Annotated[int, Field(ge=1, le=1_000_000)]
Rank = Annotated[int, Field(ge=0, le=1_000_000)]  # of a worker, a variant, a repeat, a color
Step = Annotated[int, Field(ge=0, le=10**12)]  # epochs too
Count = Annotated[int, Field(ge=0, le=10**15)]  # images, operations, values of a bin
Bytes = Annotated[int, Field(ge=0, le=2**60)]
Name = Annotated[str, Field(max_length=MAX_NAME)]  # of a metric, a network, a phase
Label = Annotated[str, _cut_at(MAX_NAME)]
Text = Annotated[str, _cut_at(MAX_TEXT), Sharing.PROSE]  # sentences
Details = Annotated[
    dict[Name, Text | int | float], Field(max_length=20), Sharing.PROSE
]  # of a reason
PictureName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]  # files are called by it
Kind = Annotated[str, Field(pattern=r"^(cpu|gpu|tpu)$")]
Tag = Annotated[str, Field(pattern=TAG)]
Tags = Annotated[list[Tag], Field(max_length=MAX_TAGS), AfterValidator(_tags)]
Remark = Annotated[str, Field(max_length=MAX_REMARK), AfterValidator(_remark), Sharing.PROSE]
Document = Annotated[dict[str, Any], AfterValidator(_document)]
Options = Annotated[dict[str, Any], AfterValidator(_options), Sharing.OPTIONS]


Row = tuple[Any, ...]


class Author(StrEnum):
    """The journal that can contain a record, and the reason to skip its line in any
    other journal.
    """

    ANYONE = ""
    SUBMISSION = "a run is submitted once, in the first line of the supervisor's journal"
    SUPERVISOR = "only the supervisor's journal contains marks of a run"
    WORKER = "only a worker's journal contains the start of an attempt"
    FIRST_WORKER = "only the first worker's journal contains this"


@dataclass(frozen=True)
class Origin:
    """The source of a record. `place`: offset of its line; `picture`: reads the PNG that a record
    names, or returns None.
    """

    run_id: str
    journal: str
    place: int
    picture: Callable[[Any], bytes | None] = lambda _: None


@dataclass(frozen=True)
class Column:
    """A column that differs from a field. `value`: a field, or a function of the record and its
    origin. `type`: SQL type, by default that of the field.
    """

    name: str
    value: str | Callable[[Any, Origin], Any]
    type: str = ""


@dataclass(frozen=True)
class RowSeries:
    """Rows ordered by step. `name`: the column that names the series; "" for a single series."""

    name: str = ""
    is_of_worker: bool = False  # rows have a rank, and are not checked for repeats


# A series: its name, its last step, and a function that returns its rows after a step.
Part = tuple[str, int, Callable[[int], list[Row]]]


@dataclass(frozen=True)
class RowTable:
    """A table `ingest.<name>` with a row for each record, or each element of the list field `each`.

    `columns`: the columns after run_id: fields of the element or record, `place` (offset of the
    line), `number` (index of the element, from 0); None for all fields. `series`: orders rows by
    the column `step`, drops repeated lines, and voids rows beyond the step that a later attempt
    resumes from. `parts`: splits a record into several series. `is_public`: there is a view of this
    name; `is_exported`: `export` writes it.
    """

    name: str
    columns: tuple[str | Column, ...] | None = None
    each: str = ""
    series: RowSeries | None = None
    parts: Callable[[Any, Origin], Iterable[Part]] | None = None
    is_public: bool = False
    is_exported: bool = False


def now() -> datetime:
    """The current time in UTC."""
    return datetime.now(UTC)


class Record(BaseModel):
    """One line of a journal. `attempt`: from 1. `at`: time of writing. `views`: exported views of
    schema.sql.

    `is_numbers_only`: no field can name a host or a user, so a bundle copies its lines unchanged.
    """

    author: ClassVar[Author] = Author.ANYONE
    tables: ClassVar[tuple[RowTable, ...]] = ()
    views: ClassVar[tuple[str, ...]] = ()
    is_numbers_only: ClassVar[bool] = False

    # NaN must reach the database, since a loss that became NaN is a result.
    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")
    attempt: Attempt = 1
    at: UtcTime = Field(default_factory=lambda: now())


def agree(*lists: list[float] | list[int]) -> None:
    """Raises ValueError if lists of a record differ in length."""
    if len({len(numbers) for numbers in lists}) > 1:
        raise ValueError("its lists must have the same length")


DASHBOARD = "dashboard"  # actor name of the pages, in records


class Role(StrEnum):
    """The permissions of an actor."""

    VIEWER = "viewer"
    OPERATOR = "operator"


@dataclass(frozen=True)
class Actor:
    """Who requests a change. `name`: stored in records. `person`: the signed-in user, if any.
    `refusal`: why a viewer cannot change anything, and what to do.
    """

    name: str
    role: Role = Role.VIEWER
    person: str = ""
    refusal: str = "You can view everything here; only operators can start, stop, change or delete."

    @property
    def may_change(self) -> bool:
        """Whether the actor is an operator."""
        return self.role is Role.OPERATOR


def operator(name: str, person: str = "") -> Actor:
    """An actor who can change everything."""
    return Actor(name, Role.OPERATOR, person, refusal="")
