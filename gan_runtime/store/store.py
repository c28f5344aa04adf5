"""The database: one DuckDB connection for the process that owns results.duckdb, one cursor per
statement.

While one process writes a DuckDB file, no other can read it, so other processes build the same
database from the journals. When a statement meets damage, the owner reopens the database, and the
statement is answered from the new one.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from gan_runtime.base.errors import QueryError, StoreDamagedError
from gan_runtime.base.formats import FORMULA_BEGINNINGS
from gan_runtime.store import database_file, user_sql
from gan_runtime.store.concurrency import QueryCache, ReopenBarrier, Result
from gan_runtime.store.record_tables import TABLES, RecordTables
from gan_runtime.store.user_sql import Limits, SqlAnswer

if TYPE_CHECKING:
    import pandas as pd

MAX_CACHED_ROWS, MAX_CACHED_BYTES = 2_000, 200_000  # of a cached answer; bytes of images and lists
REST_SECONDS, IDLE_BYTES, MAX_BYTES = 5.0, 4_000_000, 4_000_000  # of `Store.rest`
LATELY_SECONDS = 3.0
LEAST_LIMIT = "1MB"  # DuckDB frees what is not in use
RENEWAL_SECONDS = 15.0  # that a statement waits until the database is reopened
_BYTES_OF_A_NUMBER = 32  # in a list: object and reference

_OF_THE_STORE = (
    duckdb.IOException,
    duckdb.OutOfMemoryException,
    duckdb.FatalException,
    duckdb.InternalException,
    duckdb.TransactionException,
    duckdb.ConnectionException,
    MemoryError,
)


def is_store_error(error: BaseException) -> bool:
    """Whether the database failed, such as on a full disk, and not the rows to write."""
    return (
        isinstance(error, _OF_THE_STORE)
        or database_file.is_unreadable(error)
        or database_file.is_invalidated(error)
    )


def may_be_of_one_run(error: BaseException) -> bool:
    """Whether the rows of one run may be the cause, such as their size."""
    return isinstance(error, duckdb.OutOfMemoryException | duckdb.InternalException | MemoryError)


class Store:
    """A database with cached answers. Methods are thread-safe."""

    def __init__(self, path: Path | None = None, tables: RecordTables = TABLES) -> None:
        """Opens or creates the file; without a path, in memory. `tables`: of the records.

        Raises as `database_file.connected`.
        """
        self.path, self.tables, self.barrier = path, tables, ReopenBarrier()
        self.damage: duckdb.Error | None = None  # that a statement met
        self._renewals, self._left_bytes = 0, 0
        self._connection = database_file.connected(path, tables)
        self._cache = QueryCache(*database_file.tables_and_views(self._connection))
        self._writing = threading.Lock()

    def close(self) -> None:
        """Writes everything and closes the file."""
        with suppress(duckdb.Error):  # a damaged file cannot be written
            database_file.merge_when_closed(self._connection)
        self._close_connection()

    def renew(self, between: Callable[[], None]) -> None:
        """Waits for running statements, closes the file, calls `between`, and opens it again.

        Raises as `database_file.connected` and `between`; `damage` then remains.
        """
        with self.barrier.shut():
            self._close_connection()
            between()
            self._connection = database_file.connected(self.path, self.tables)
            self._cache.changed()
            self.damage, self._renewals = None, self._renewals + 1

    def frame(
        self, sql: str, parameters: Sequence[Any] | dict[str, Any] | None = None
    ) -> pd.DataFrame:
        """The rows of a SELECT, with times in UTC."""

        def make() -> pd.DataFrame:
            import pandas as pd  # takes 0.3 s, and Home does not need it

            answer = self._answer_now(sql, parameters)
            return pd.DataFrame.from_records(answer.rows, columns=answer.columns)

        key = ("frame", sql, repr(parameters))
        frame = self._cache.once(key, make, sql, lambda frame: len(frame) <= MAX_CACHED_ROWS)
        return frame.copy(deep=False)  # pandas copies on write

    def rows(
        self, sql: str, parameters: Sequence[Any] | dict[str, Any] | None = None
    ) -> list[tuple[Any, ...]]:
        """The rows of a SELECT as tuples."""

        def make() -> list[tuple[Any, ...]]:
            return self._answer_now(sql, parameters).rows

        return list(self._cache.once(("rows", sql, repr(parameters)), make, sql, _is_short))

    def once(self, make: Callable[..., Result], *what: Hashable) -> Result:
        """`make(store, *what)`, computed once until a table changes; the result is shared."""
        return self._cache.once((make, what), lambda: make(self, *what))

    def lately(
        self, make: Callable[..., Result], *what: Hashable, age_s: float = LATELY_SECONDS
    ) -> Result:
        """As `once`, but the answer may be `age_s` old after a change."""
        return self._cache.once((make, what), lambda: make(self, *what), age_s=age_s)

    def rest(
        self, seconds: float = REST_SECONDS, idle: int = IDLE_BYTES, most: int = MAX_BYTES
    ) -> bool:
        """Frees DuckDB's buffers when idle; returns whether it did. Called repeatedly.

        DuckDB buffers up to 80% of the machine's memory, and frees it only when its limit is set
        lower. A permanent limit would refuse large statements.

        `idle`: bytes that may remain after `seconds` without a statement. `most`: above this, the
        buffers are freed as soon as no statement is running.
        """
        if self.path is None:
            return False
        with suppress(duckdb.Error):
            with self.barrier.rest(seconds) as is_at_rest:
                if is_at_rest:
                    return self._free_buffers(idle)
            with self.barrier.still() as is_still:
                return is_still and self._free_buffers(max(most, 2 * self._left_bytes))
        return False

    def _free_buffers(self, most: int) -> bool:
        with self._connection.cursor() as cursor:
            if _buffer_bytes(cursor) <= most:
                return False
            try:
                cursor.execute(f"SET memory_limit = '{LEAST_LIMIT}'")
            finally:
                cursor.execute("RESET memory_limit")
                self._left_bytes = _buffer_bytes(cursor)  # such as rows not yet in the file
        return True

    def _close_connection(self) -> None:
        with suppress(duckdb.Error):
            self._connection.close()

    def forget_answers(self) -> None:
        """Empties the cache, for measurements."""
        self._cache.changed()

    def user_answer(self, sql: str, limits: Limits = Limits()) -> SqlAnswer:  # noqa: B008  (frozen)
        """The answer to a statement of the user. Afterwards this store accesses no other file.

        Raises as `user_sql.answer`.
        """
        return user_sql.answer(self._connection.cursor(), sql, limits)

    def copy_view(self, view: str, run_ids: list[str], target: Path) -> None:
        """Writes the rows of some runs of a view to a .parquet or .csv file.

        In CSV, a text that a spreadsheet would compute (= + - @ or a tab first) gets an apostrophe.
        Raises OSError where the file cannot be written.
        """
        if target.suffix == ".csv" and view == "samples":
            raise QueryError(
                "samples contain images, which CSV cannot hold: export them as Parquet."
            )
        try:
            self._copy(view, run_ids, target)
        except duckdb.IOException as error:
            raise OSError(str(error)) from error

    def _copy(self, view: str, run_ids: list[str], target: Path) -> None:
        marks = ", ".join("?" for _ in run_ids)
        with self._cursor() as cursor:
            columns = "*" if target.suffix == ".parquet" else _harmless_columns(cursor, view)
            form = "PARQUET" if target.suffix == ".parquet" else "CSV, HEADER"
            cursor.execute(
                f"COPY (SELECT {columns} FROM {view} WHERE run_id IN ({marks})) TO"
                f" '{_quoted(target)}' (FORMAT {form})",
                run_ids,
            )

    @contextmanager
    def transaction(self) -> Iterator[Writer]:
        """Commits all or nothing: rows together with the journal offset that they came from."""
        with self._writing, self._cursor() as cursor:
            cursor.execute("BEGIN")
            writer = Writer(cursor)
            try:
                yield writer
            except BaseException:
                with suppress(duckdb.Error):  # the database may be invalidated
                    cursor.execute("ROLLBACK")
                raise
            cursor.execute("COMMIT")
            self._cache.changed(writer.changed)

    def _run(self, ask: Callable[[duckdb.DuckDBPyConnection], Result]) -> Result:
        """Runs a statement, and again after damage, once the owner has reopened the database."""
        before = self._renewals
        try:
            with self._cursor() as cursor:
                return ask(cursor)
        except duckdb.Error as error:
            if self.damage is None and self._renewals == before:
                raise
            if not self.barrier.wait_until(lambda: self._renewals > before, RENEWAL_SECONDS):
                raise StoreDamagedError(
                    f"{self.path} is damaged: {str(error).splitlines()[0]}"
                ) from error
        with self._cursor() as cursor:
            return ask(cursor)

    @contextmanager
    def _cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        with self.barrier.passed():
            try:
                cursor = self._connection.cursor()
                try:
                    yield cursor
                finally:
                    cursor.close()
            except duckdb.Error as error:
                if database_file.is_unreadable(error) or (
                    database_file.is_invalidated(error) and not self._answers()
                ):
                    self.damage = error
                raise

    def _answers(self) -> bool:
        """Whether the database still answers after an error that may have invalidated it."""
        try:
            with self._connection.cursor() as cursor:
                cursor.execute("SELECT 1").fetchall()
        except duckdb.Error:
            return False
        return True

    def _answer_now(
        self, sql: str, parameters: Sequence[Any] | dict[str, Any] | None = None
    ) -> SqlAnswer:
        def ask(cursor: duckdb.DuckDBPyConnection) -> SqlAnswer:
            cursor.execute(sql, parameters)
            return SqlAnswer([column[0] for column in cursor.description or []], cursor.fetchall())

        return self._run(ask)


class Writer:
    """Writes rows within one transaction."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self._cursor = cursor
        self.changed: set[str] = set()  # tables

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        """Runs a statement without rows on tables of `ingest`."""
        self.changed.update(re.findall(r"ingest\.(\w+)", sql))
        self._cursor.execute(sql, parameters).fetchall()

    def append(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Adds rows to `ingest.<table>`."""
        self.changed.add(table)
        with self._cursor.appender(f"ingest.{table}") as appender:
            appender.append_rows(list(rows))


def _buffer_bytes(cursor: duckdb.DuckDBPyConnection) -> int:
    return int(
        cursor.execute("SELECT sum(memory_usage_bytes) FROM duckdb_memory()").fetchall()[0][0]
    )


def _is_short(rows: list[tuple[Any, ...]]) -> bool:
    if len(rows) > MAX_CACHED_ROWS:
        return False
    return sum(_bytes(cell) for row in rows for cell in row) <= MAX_CACHED_BYTES


def _bytes(cell: Any) -> int:
    """Of an image, or of a list, whose numbers are objects."""
    if isinstance(cell, bytes):
        return len(cell)
    return _BYTES_OF_A_NUMBER * len(cell) if isinstance(cell, list) else 0


def _harmless_columns(cursor: duckdb.DuckDBPyConnection, view: str) -> str:
    """The columns of a view, with an apostrophe before texts that look like formulas."""
    texts = [row[0] for row in cursor.execute(f"DESCRIBE {view}").fetchall() if row[1] == "VARCHAR"]
    harmless = [
        rf"regexp_replace({name}, '^([{FORMULA_BEGINNINGS}])', '''\1') AS {name}" for name in texts
    ]
    return f"* REPLACE ({', '.join(harmless)})" if harmless else "*"


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
