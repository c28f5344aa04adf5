"""A person's SQL: one statement that reads, within a time and a number of rows, and nothing
outside of the store.
"""

from __future__ import annotations

import contextlib
import resource
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import duckdb
import psutil

from gan_runtime.base.errors import QueryError

READING = {
    duckdb.StatementType.SELECT
}  # not EXPLAIN: with ANALYZE it carries out the DELETE or COPY that it explains
_READS = (
    'sql takes one statement that reads, such as "SELECT name, status FROM runs": the store itself'
    " is written by training only."
)
# A thread that is within DuckDB while Python ends aborts the process, after the answer was printed.
ENDING_SECONDS = 5.0
MOST_COLUMNS, MOST_MEMORY = 1_000, 2_000_000_000
# Of the whole store and for good: no file, no other database, no Python variable, and no way to
# change that.
_SHUT = ("SET enable_external_access = false", "SET lock_configuration = true")


@dataclass(frozen=True)
class Limits:
    """How long a statement may take, in seconds, and how many of its rows are given."""

    seconds: float = 60.0
    rows: int = 10_000


@dataclass(frozen=True)
class Answer:
    """What a statement gave, unchanged: a frame would turn NULL into NaN, and whole numbers beside
    it into fractions.

    `cut`: there were more rows than asked for.
    """

    columns: list[str]
    rows: list[tuple[Any, ...]]
    cut: bool = False

    def records(self) -> list[dict[str, Any]]:
        """One object a row, by `names`."""
        names = self.names
        return [dict(zip(names, row, strict=True)) for row in self.rows]

    @property
    def names(self) -> list[str]:
        """Of the columns; those of equal name keep apart: a, a_2, a_3."""
        names: list[str] = []
        for column in self.columns:
            names.append(
                _free_name(column, {*names, *(other for other in self.columns if other != column)})
            )
        return names


def answer(cursor: duckdb.DuckDBPyConnection, sql: str, limits: Limits) -> Answer:
    """The rows of one statement; closes the cursor and shuts its store off from the rest of the
    host.

    Raises:
        QueryError: DuckDB's own complaint, the statement would write, or it takes too long.
        KeyboardInterrupt: Ctrl-C ends the statement as well.
    """
    found: Future[Answer] = Future()
    # A thread of its own: within DuckDB a process hears no Ctrl-C until the statement has ended.
    worker = threading.Thread(target=_work, args=(cursor, sql, limits.rows, found), daemon=True)
    try:
        with _bounded_memory():
            worker.start()
            return found.result(limits.seconds)
    except TimeoutError:
        cursor.interrupt()
        raise QueryError(
            f"the statement has no answer after {limits.seconds:g} s: ask for less, or give"
            " --seconds."
        ) from None
    except KeyboardInterrupt:
        cursor.interrupt()
        raise
    except (duckdb.OutOfMemoryException, MemoryError):
        raise QueryError(
            f"the statement needs more than {MOST_MEMORY / 1e9:.0f} GB of memory: ask for fewer"
            " rows, or for less of each."
        ) from None
    except duckdb.Error as error:
        raise QueryError(
            f"the statement does not run: {str(error).strip()} The views are listed in"
            " docs/schema.md."
        ) from None
    finally:
        worker.join(ENDING_SECONDS)


def _work(
    cursor: duckdb.DuckDBPyConnection, sql: str, most_rows: int, found: Future[Answer]
) -> None:
    try:
        found.set_result(_rows(cursor, sql, most_rows))
    except BaseException as error:  # whoever waits for it raises it
        found.set_exception(error)
    finally:
        cursor.close()


def _rows(cursor: duckdb.DuckDBPyConnection, sql: str, most_rows: int) -> Answer:
    kinds = _kinds(sql)
    if len(kinds) != 1 or kinds[0] not in READING:
        raise QueryError(_READS)
    _shut(cursor)
    # A SELECT may hold a DELETE in its WITH; DuckDB refuses that within a transaction that reads
    # only.
    cursor.execute("BEGIN TRANSACTION READ ONLY")
    try:
        cursor.execute(sql)
        columns = [column[0] for column in cursor.description or []]
        if len(columns) > MOST_COLUMNS:
            raise QueryError(
                f"the statement gives {len(columns):,} columns, but at most {MOST_COLUMNS:,} are"
                " given: name those that you need."
            )
        rows = cursor.fetchmany(most_rows + 1)
    except duckdb.TransactionException as error:
        raise QueryError(_READS) from error
    return Answer(columns, rows[:most_rows], cut=len(rows) > most_rows)


def _kinds(sql: str) -> list[duckdb.StatementType]:
    """Of its statements; none for what DuckDB's Python module does not know, such as UPDATE
    EXTENSIONS.
    """
    try:
        return [statement.type for statement in duckdb.extract_statements(sql)]
    except ValueError:
        return []


@contextlib.contextmanager
def _bounded_memory() -> Iterator[None]:
    """What this process may take more than it has: DuckDB's own limit does not count the
    texts and lists of an answer.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = psutil.Process().memory_info().vms + MOST_MEMORY
    resource.setrlimit(
        resource.RLIMIT_AS, (most if soft == resource.RLIM_INFINITY else min(soft, most), hard)
    )
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _shut(cursor: duckdb.DuckDBPyConnection) -> None:
    """Shuts the store off; one that has been asked before is shut already, and takes no setting."""
    if cursor.execute("SELECT current_setting('lock_configuration')").fetchall() != [(True,)]:
        for setting in _SHUT:
            cursor.execute(setting)


def _free_name(name: str, taken: set[str]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free
