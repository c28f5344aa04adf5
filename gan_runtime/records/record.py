"""What a record is: one line of a journal, declared once. Times are UTC.

Its fields, with their types and limits, give the line. The class says besides whose journal may hold it, the tables of its
rows with the columns that follow from the fields, whether they are void beyond the step that a later attempt resumes from, and
whether they are a public view and exported. Marks on types of fields say what a bundle leaves out (columns.py). Reader, tables, intake,
export and bundles follow these declarations (store/record_tables.py, bundles/privacy.py). Other views are in store/schema.sql.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from gan_runtime.records.columns import Attempt, UtcTime

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
    """Where a record was read. `place`: the first byte of its line; `picture`: reads the PNG that a record names, None without it."""

    run_id: str
    journal: str
    place: int
    picture: Callable[[Any], bytes | None] = lambda _: None


@dataclass(frozen=True)
class Column:
    """A column with another name or value than a field: `value` is a field, or a function of the record and its origin.

    `type`: of SQL; that of a field follows from its type.
    """

    name: str
    value: str | Callable[[Any, Origin], Any]
    type: str = ""


@dataclass(frozen=True)
class Series:
    """Rows that come in order of their step. `name`: the column that names the series that a row belongs to; "": there is one."""

    name: str = ""
    is_of_worker: bool = (
        False  # each worker has its own rows, with its rank; they are not looked through for repeats
    )


# Of one series: its name, its last step, and the rows of it that come after a step.
Part = tuple[str, int, Callable[[int], list[Row]]]


@dataclass(frozen=True)
class RowTable:
    """A table `ingest.<name>` with a row for each record, or for each item of the list field `each`.

    `columns`: after run_id, which comes first; names of fields (of the item, else of the record), `place` (of the line) and
    `number` (of the item, from 0) stand for themselves. None: all fields of the record.
    `series`: its column `step` orders the rows, a repeated line is left out, and rows beyond the step that a later attempt
    resumes from are void. `parts`: splits a record into rows of several series; each record is one part otherwise.
    `is_public`: there is a view of its name with its columns. `is_exported`: `export` writes that view.
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

    `tables`: of its rows. `views`: those of schema.sql that show them and are exported. `is_numbers_only`: nothing in it could
    tell of a host or a person, so that a bundle takes its lines as they are.
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
