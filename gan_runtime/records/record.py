"""What a record is: one line of a journal, declared once. Times are UTC.

Its fields, with their types and limits, give the line. The class says besides whose journal may
hold it, the tables of its rows with the columns that follow from the fields, whether they are void
beyond the step that a later attempt resumes from, and whether they are a public view and exported.
Marks on types of fields say what a bundle leaves out. Reader, tables, intake, export and bundles
follow these declarations (store/record_tables.py, bundles/privacy.py). Other views are in
store/schema.sql.

The types of fields come first: what the columns of the store take, so that a record is checked
where it enters. Bounds leave room for sums and products in SQL: a count of images stays within
BIGINT also when it is multiplied by a batch.
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

# All controls but the end of a line, marks of writing direction, halves of characters: what no note
# of a person needs.
_UNSEEN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
MAX_TAGS, MAX_REMARK = 20, 2_000
MAX_NAME, MAX_TEXT, MAX_DOCUMENT = 200, 10_000, 100_000  # characters
MAX_METRICS = 1_000  # of one record
MOST_STEPS = 10_000  # of an evaluation that predicts step by step
TAG = r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,38}[A-Za-z0-9._-]$|^[A-Za-z0-9]$"
YEARS = (1970, 2200)  # pandas counts nanoseconds, up to 2262
# A page divides by some of these, and groups and names runs by the others.
NEEDED = ("workload", "dataset", "precision", "replicas", "batch_size_global", "epochs", "seed")


def _utc(moment: datetime) -> datetime:
    """Journals are in UTC, so a time without a zone is one too."""
    if not YEARS[0] <= moment.year < YEARS[1]:
        raise ValueError(f"the year must be from {YEARS[0]} to {YEARS[1] - 1}")
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _document(value: dict[str, Any]) -> dict[str, Any]:
    # Raises ValueError for what JSON cannot hold, such as a whole number of 5,000 digits.
    text = json.dumps(value)
    if len(text) > MAX_DOCUMENT:
        raise ValueError(f"it has more than {MAX_DOCUMENT:,} characters")
    return value


def _options(values: dict[str, Any]) -> dict[str, Any]:
    """The options of a run as the views and pages need them; those that this version does not
    know may be anything.
    """
    absent = [name for name in NEEDED if name not in values]
    if absent:
        raise ValueError(f"{absent[0]} is missing")
    given = nesting.flat(values)
    for name, option in RunSpec.options(nesting.workload_of(values)).items():
        if name in given and not _fits(given[name], option.kind, option.minimum, option.maximum):
            raise ValueError(f"{name} is not {option.allowed}")
    return _document(values)


def _fits(value: Any, kind: type, minimum: float | None, maximum: float | None) -> bool:
    """Names of a choice may be unknown: they come and go with versions."""
    if kind is str:
        return isinstance(value, str) and len(value) <= MAX_NAME
    if isinstance(value, bool) or not isinstance(value, int if kind is int else (int, float)):
        return False
    if kind is float:
        return math.isfinite(value)
    return (minimum is None or minimum <= value) and (maximum is None or value <= maximum)


def _remark(text: str) -> str:
    """Lines of text, without what would move a cursor or turn text round."""
    if _UNSEEN.search(text):
        raise ValueError("it holds characters that cannot be seen")
    return text


def _cut_at(most: int) -> AfterValidator:
    """What the program writes itself, such as the reason of a failure, must not be refused
    for its length.
    """
    return AfterValidator(lambda text: text if len(text) <= most else f"{text[: most - 1]}…")


def _tags(tags: list[str]) -> list[str]:
    """In their order, each once."""
    return list(dict.fromkeys(tags))


class Sharing(Enum):
    """Marks of fields: what a bundle, which goes to others, leaves out of them.

    Names of folders go from every text.
    """

    PROSE = "texts without names of hosts and addresses"
    OPTIONS = "options without the address of a TPU"
    HOME = "nothing of it: it is a matter of this home"


@dataclass(frozen=True)
class Private:
    """Marks a document: without the entry of this name in a bundle."""

    name: str


UtcTime = Annotated[datetime, AfterValidator(_utc)]
Attempt = Annotated[int, Field(ge=1, le=1_000_000)]
Rank = Annotated[int, Field(ge=0, le=1_000_000)]  # of a worker, a variant, a repeat, a color
Step = Annotated[int, Field(ge=0, le=10**12)]  # epochs too
Count = Annotated[int, Field(ge=0, le=10**15)]  # images, operations, values of a bin
Bytes = Annotated[int, Field(ge=0, le=2**60)]
Name = Annotated[str, Field(max_length=MAX_NAME)]  # of a metric, a network, a phase
Label = Annotated[str, _cut_at(MAX_NAME)]  # in words
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
    """Whose journal may hold a record: the reason why a line in another one is left out."""

    ANYONE = ""
    SUBMISSION = "a run is submitted once, in the first line of its supervisor's journal"
    SUPERVISOR = "only the supervisor's journal tells what a person thinks of a run"
    WORKER = "only a worker's journal tells of an attempt"
    FIRST_WORKER = "only the first worker measures this"


@dataclass(frozen=True)
class Origin:
    """Where a record was read.

    `place`: the first byte of its line; `picture`: reads the PNG that a record names, None without
    it.
    """

    run_id: str
    journal: str
    place: int
    picture: Callable[[Any], bytes | None] = lambda _: None


@dataclass(frozen=True)
class Column:
    """A column with another name or value than a field: `value` is a field, or a function of the
    record and its origin.

    `type`: of SQL; that of a field follows from its type.
    """

    name: str
    value: str | Callable[[Any, Origin], Any]
    type: str = ""


@dataclass(frozen=True)
class Series:
    """Rows that come in order of their step.

    `name`: the column that names the series that a row belongs to; "": there is one.
    """

    name: str = ""
    # each worker has its own rows, with its rank; they are not looked through for repeats
    is_of_worker: bool = False


# Of one series: its name, its last step, and the rows of it that come after a step.
Part = tuple[str, int, Callable[[int], list[Row]]]


@dataclass(frozen=True)
class RowTable:
    """A table `ingest.<name>` with a row for each record, or for each item of the list field
    `each`.

    `columns`: after run_id, which comes first; names of fields (of the item, else of the record),
    `place` (of the line) and `number` (of the item, from 0) stand for themselves. None: all fields
    of the record.
    `series`: its column `step` orders the rows, a repeated line is left out, and rows beyond the
    step that a later attempt resumes from are void. `parts`: splits a record into rows of several
    series; each record is one part otherwise.
    `is_public`: there is a view of its name with its columns. `is_exported`: `export` writes that
    view.
    """

    name: str
    columns: tuple[str | Column, ...] | None = None
    each: str = ""
    series: Series | None = None
    parts: Callable[[Any, Origin], Iterable[Part]] | None = None
    is_public: bool = False
    is_exported: bool = False


def now() -> datetime:
    """The present in UTC."""
    return datetime.now(UTC)


class Record(BaseModel):
    """`attempt`: the one that it belongs to, from 1. `at`: when it was written.

    `tables`: of its rows. `views`: those of schema.sql that show them and are exported.
    `is_numbers_only`: nothing in it could tell of a host or a person, so that a bundle takes its
    lines as they are.
    """

    author: ClassVar[Author] = Author.ANYONE
    tables: ClassVar[tuple[RowTable, ...]] = ()
    views: ClassVar[tuple[str, ...]] = ()
    is_numbers_only: ClassVar[bool] = False

    # NaN must survive the way to the store: a loss that became NaN is a fact worth keeping.
    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")
    attempt: Attempt = 1
    at: UtcTime = Field(default_factory=lambda: now())


def agree(*lists: list[float] | list[int]) -> None:
    """Raises ValueError when some lists of a record are of different lengths."""
    if len({len(numbers) for numbers in lists}) > 1:
        raise ValueError("its lists must be of one length")
