"""SQL of the user: one statement that reads, with limits of time, rows and memory."""

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

READING = {duckdb.StatementType.SELECT}  # EXPLAIN ANALYZE would run the DELETE that it explains
_ONE_SELECT = (
    'sql accepts one statement that reads: use a SELECT, such as "SELECT name, status FROM runs".'
)
# A thread within DuckDB when Python exits would abort the process.
ENDING_SECONDS = 5.0
MAX_COLUMNS, MAX_MEMORY = 1_000, 2_000_000_000
# Permanently, of the whole database: no files, no other databases, no Python variables.
_RESTRICTIONS = ("SET enable_external_access = false", "SET lock_configuration = true")


@dataclass(frozen=True)
class Limits:
    """The time of a statement, and the number of its rows."""

    seconds: float = 60.0
    rows: int = 10_000


@dataclass(frozen=True)
class SqlAnswer:
    """Columns and rows of a statement; a frame would convert NULL to NaN, and integers to floats.

    `cut`: there were more rows than the limit.
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
        """Unique names of the columns: a, a_2, a_3."""
        names: list[str] = []
        for column in self.columns:
            names.append(
                _free_name(column, {*names, *(other for other in self.columns if other != column)})
            )
        return names


def answer(cursor: duckdb.DuckDBPyConnection, sql: str, limits: Limits) -> SqlAnswer:
    """Runs one statement, closes the cursor, and restricts its database to itself.

    Raises:
        QueryError: DuckDB's error, the statement would write, or it exceeds a limit.
        KeyboardInterrupt: Ctrl-C also ends the statement.
    """
    result: Future[SqlAnswer] = Future()
    # In a separate thread, as DuckDB blocks Ctrl-C until the statement ends.
    worker = threading.Thread(target=_work, args=(cursor, sql, limits.rows, result), daemon=True)
    try:
        with _bounded_memory():
            worker.start()
            return result.result(limits.seconds)
    except TimeoutError:
        cursor.interrupt()
        raise QueryError(
            f"the statement has no answer after {limits.seconds:g} s: select less, or raise"
            " --seconds."
        ) from None
    except KeyboardInterrupt:
        cursor.interrupt()
        raise
    except (duckdb.OutOfMemoryException, MemoryError):
        raise QueryError(
            f"the statement needs more than {MAX_MEMORY / 1e9:.0f} GB of memory: select fewer rows"
            " or columns."
        ) from None
    except duckdb.Error as error:
        raise QueryError(
            f"the statement failed: {str(error).strip()} The views are listed in docs/schema.md."
        ) from None
    finally:
        worker.join(ENDING_SECONDS)


def _work(
    cursor: duckdb.DuckDBPyConnection, sql: str, most_rows: int, result: Future[SqlAnswer]
) -> None:
    try:
        result.set_result(_rows(cursor, sql, most_rows))
    except BaseException as error:  # raised by the waiting thread
        result.set_exception(error)
    finally:
        cursor.close()


def _rows(cursor: duckdb.DuckDBPyConnection, sql: str, most_rows: int) -> SqlAnswer:
    kinds = _kinds(sql)
    if len(kinds) != 1 or kinds[0] not in READING:
        raise QueryError(_ONE_SELECT)
    _restrict(cursor)
    # Within a read-only transaction, DuckDB refuses a SELECT with a DELETE in its WITH clause.
    cursor.execute("BEGIN TRANSACTION READ ONLY")
    try:
        cursor.execute(sql)
        columns = [column[0] for column in cursor.description or []]
        if len(columns) > MAX_COLUMNS:
            raise QueryError(
                f"the statement has {len(columns):,} columns, but at most {MAX_COLUMNS:,} are"
                " allowed: name those that you need."
            )
        rows = cursor.fetchmany(most_rows + 1)
    except duckdb.TransactionException as error:
        raise QueryError(_ONE_SELECT) from error
    return SqlAnswer(columns, rows[:most_rows], cut=len(rows) > most_rows)


def _kinds(sql: str) -> list[duckdb.StatementType]:
    """The type of each statement; empty for types that DuckDB's Python module does not know."""
    try:
        return [statement.type for statement in duckdb.extract_statements(sql)]
    except ValueError:
        return []


@contextlib.contextmanager
def _bounded_memory() -> Iterator[None]:
    """Limits this process, as DuckDB's limit does not count texts and lists of an answer."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = psutil.Process().memory_info().vms + MAX_MEMORY
    resource.setrlimit(
        resource.RLIMIT_AS, (most if soft == resource.RLIM_INFINITY else min(soft, most), hard)
    )
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _restrict(cursor: duckdb.DuckDBPyConnection) -> None:
    """Restricts the database, once: afterwards it accepts no setting."""
    if cursor.execute("SELECT current_setting('lock_configuration')").fetchall() != [(True,)]:
        for setting in _RESTRICTIONS:
            cursor.execute(setting)


def _free_name(name: str, names: set[str]) -> str:
    number, free = 1, name
    while free in names:
        number += 1
        free = f"{name}_{number}"
    return free
