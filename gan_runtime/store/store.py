"""The results store: one DuckDB connection for the process that owns results.duckdb, one cursor per
question.

DuckDB lets one process write a file and then no other read it, so the owner answers for everyone; a
process that is not the owner builds the same store from the journals. Where a statement meets
damage, the owner opens the database anew (supervision/store_recovery.py) and whoever asked is
answered from that one.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb

from gan_runtime.base.errors import QueryError, StoreDamagedError
from gan_runtime.base.output_files import FORMULA_BEGINNINGS
from gan_runtime.store import database_file, user_sql
from gan_runtime.store.concurrency import Made, QueryCache, ReopenBarrier
from gan_runtime.store.record_tables import TABLES, RecordTables
from gan_runtime.store.user_sql import Answer, Limits

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS_KEPT, MOST_BYTES_KEPT = (
    2_000,
    200_000,
)  # of an answer that others may ask for as well; bytes: of its pictures and lists
REST_SECONDS, BYTES_KEPT, MOST_BYTES = 5.0, 4_000_000, 4_000_000  # see `Store.rest`
LATELY_SECONDS = 3.0
LEAST_LIMIT = "1MB"  # DuckDB goes as far below its limit as what is in use allows
RENEWAL_SECONDS = 15.0  # that a question waits for its owner to open the database anew
_BYTES_OF_A_NUMBER = 32  # of a list: the number and where it is
Found = TypeVar("Found")

_OF_THE_STORE = (
    duckdb.IOException,
    duckdb.OutOfMemoryException,
    duckdb.FatalException,
    duckdb.InternalException,
    duckdb.TransactionException,
    duckdb.ConnectionException,
    MemoryError,
)


def is_trouble_of_the_store(error: BaseException) -> bool:
    """Whether the store is to blame, such as on a full disk; else what was to be written is."""
    return (
        isinstance(error, _OF_THE_STORE)
        or database_file.is_unreadable(error)
        or database_file.is_invalidated(error)
    )


def may_be_of_one_run(error: BaseException) -> bool:
    """Whether it may be one run's rows that DuckDB cannot take, such as for their size,
    though it takes others.
    """
    return isinstance(error, duckdb.OutOfMemoryException | duckdb.InternalException | MemoryError)


class Store:
    """Opened once per process and handed to whoever asks; safe to use from several threads."""

    def __init__(self, path: Path | None = None, tables: RecordTables = TABLES) -> None:
        """Opens or creates the file; without a path, a store in memory.

        `tables`: of the records that it takes in.

        Raises as `opening.connected`.
        """
        self.path, self.tables, self.barrier = path, tables, ReopenBarrier()
        self.damage: duckdb.Error | None = (
            None  # that a statement has met, and the next one would meet again
        )
        self._renewals, self._left_bytes = 0, 0
        self._connection = database_file.connected(path, tables)
        self._memo = QueryCache(*database_file.tables_and_views(self._connection))
        self._writing = threading.Lock()

    def close(self) -> None:
        """Writes everything into the file and releases it."""
        with suppress(duckdb.Error):  # a damaged file takes nothing more; the journals have it all
            database_file.merge_when_closed(self._connection)
        self._let_go()

    def renew(self, between: Callable[[], None]) -> None:
        """Lets the statements under way end, closes the file, does what is to be done `between`,
        and opens it again.

        Raises as `opening.connected` and `between`; the damage then stands as before, for another
        try.
        """
        with self.barrier.shut():
            self._let_go()
            between()
            self._connection = database_file.connected(self.path, self.tables)
            self._memo.changed()
            self.damage, self._renewals = None, self._renewals + 1

    def frame(
        self, sql: str, parameters: Sequence[Any] | dict[str, Any] | None = None
    ) -> pd.DataFrame:
        """The rows of a SELECT. Times come in UTC."""

        def make() -> pd.DataFrame:
            import pandas as pd  # a third of a second, which Home starts without

            answer = self._answer_now(sql, parameters)
            return pd.DataFrame.from_records(answer.rows, columns=answer.columns)

        key = ("frame", sql, repr(parameters))
        return self._memo.once(key, make, sql, lambda frame: len(frame) <= MOST_ROWS_KEPT).copy(
            deep=False
        )  # pandas copies what is written to

    def rows(
        self, sql: str, parameters: Sequence[Any] | dict[str, Any] | None = None
    ) -> list[tuple[Any, ...]]:
        """The rows of a SELECT as tuples."""

        def make() -> list[tuple[Any, ...]]:
            return self._answer_now(sql, parameters).rows

        return list(self._memo.once(("rows", sql, repr(parameters)), make, sql, _is_short))

    def once(self, make: Callable[..., Made], *what: Hashable) -> Made:
        """`make(store, *what)`, made once for all who ask before a table changes that it reads.

        Whoever gets it leaves it as it is.
        """
        return self._memo.once((make, what), lambda: make(self, *what))

    def lately(
        self, make: Callable[..., Made], *what: Hashable, age_s: float = LATELY_SECONDS
    ) -> Made:
        """As `once`, but the answer may be `age_s` old though a table has changed: for what
        changes seldom, or is asked by many.
        """
        return self._memo.once((make, what), lambda: make(self, *what), age_s=age_s)

    def rest(
        self, seconds: float = REST_SECONDS, kept: int = BYTES_KEPT, most: int = MOST_BYTES
    ) -> bool:
        """Gives back what DuckDB keeps of the file, once nobody has asked for so long; whether it
        did. It is called again and again.

        DuckDB keeps all that it has read, up to four fifths of the machine's memory, and gives it
        back only where its limit falls below.
        `kept`: so many bytes are not worth reading them anew; `most`: beyond so many all is given
        back as soon as no statement is under way, however often pages ask. A limit of DuckDB's own
        would refuse a statement that needs more.
        """
        if self.path is None:
            return False
        with suppress(duckdb.Error):
            with self.barrier.rest(seconds) as is_at_rest:
                if is_at_rest:
                    return self._give_back(kept)
            with self.barrier.still() as is_still:
                return is_still and self._give_back(max(most, 2 * self._left_bytes))
        return False

    def _give_back(self, kept: int) -> bool:
        with self._connection.cursor() as cursor:
            if _held_bytes(cursor) <= kept:
                return False
            try:
                cursor.execute(f"SET memory_limit = '{LEAST_LIMIT}'")
            finally:
                cursor.execute("RESET memory_limit")
                self._left_bytes = _held_bytes(cursor)  # such as rows that are not in the file yet
        return True

    def _let_go(self) -> None:
        with suppress(duckdb.Error):
            self._connection.close()

    def forget_answers(self) -> None:
        """The next questions are asked anew, for whoever measures how long that takes."""
        self._memo.changed()

    def person_answer(self, sql: str, limits: Limits = Limits()) -> Answer:  # noqa: B008  (frozen)
        """One statement that a person typed.

        Afterwards this store reads and writes no file any more.

        Raises as `person.answer`.
        """
        return user_sql.answer(self._connection.cursor(), sql, limits)

    def copy_view(self, view: str, run_ids: list[str], target: Path) -> None:
        """Writes the rows of some runs of a view into a .parquet or .csv file; the ending decides.

        In CSV a text that a spreadsheet would compute (it begins with = + - @ or a tab) gets an
        apostrophe before it.
        """
        if target.suffix == ".csv" and view == "samples":
            raise QueryError(
                "samples hold pictures, which do not fit into CSV: export them as Parquet."
            )
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
        """All or nothing: rows and the journal offset that they came from are committed
        together.
        """
        with self._writing, self._cursor() as cursor:
            cursor.execute("BEGIN")
            writer = Writer(cursor)
            try:
                yield writer
            except BaseException:
                with suppress(
                    duckdb.Error
                ):  # nothing is left to be taken back where the database is gone
                    cursor.execute("ROLLBACK")
                raise
            cursor.execute("COMMIT")
            self._memo.changed(writer.changed)

    def _asked(self, ask: Callable[[duckdb.DuckDBPyConnection], Found]) -> Found:
        """The answer to a question.

        One that meets damage is asked again once the owner has opened the database anew.
        """
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
        """Whether the database goes on after an error that may have ended it: else only the
        one statement was at fault.
        """
        try:
            with self._connection.cursor() as cursor:
                cursor.execute("SELECT 1").fetchall()
        except duckdb.Error:
            return False
        return True

    def _answer_now(
        self, sql: str, parameters: Sequence[Any] | dict[str, Any] | None = None
    ) -> Answer:
        def ask(cursor: duckdb.DuckDBPyConnection) -> Answer:
            cursor.execute(sql, parameters)
            return Answer([column[0] for column in cursor.description or []], cursor.fetchall())

        return self._asked(ask)


class Writer:
    """The writing side of one transaction."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self._cursor = cursor
        self.changed: set[str] = set()  # tables

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        """Runs one statement that gives no rows, on tables of the schema `ingest`."""
        self.changed.update(re.findall(r"ingest\.(\w+)", sql))
        self._cursor.execute(sql, parameters).fetchall()

    def append(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Adds rows to `ingest.<table>`, in the order of its columns."""
        self.changed.add(table)
        with self._cursor.appender(f"ingest.{table}") as appender:
            appender.append_rows(list(rows))


def _held_bytes(cursor: duckdb.DuckDBPyConnection) -> int:
    return int(
        cursor.execute("SELECT sum(memory_usage_bytes) FROM duckdb_memory()").fetchall()[0][0]
    )


def _is_short(rows: list[tuple[Any, ...]]) -> bool:
    if len(rows) > MOST_ROWS_KEPT:
        return False
    return sum(_bytes(cell) for row in rows for cell in row) <= MOST_BYTES_KEPT


def _bytes(cell: Any) -> int:
    """Of a picture, or of a list, whose numbers are objects of their own."""
    if isinstance(cell, bytes):
        return len(cell)
    return _BYTES_OF_A_NUMBER * len(cell) if isinstance(cell, list) else 0


def _harmless_columns(cursor: duckdb.DuckDBPyConnection, view: str) -> str:
    """The columns of a view, so that a spreadsheet takes no text for a formula."""
    texts = [row[0] for row in cursor.execute(f"DESCRIBE {view}").fetchall() if row[1] == "VARCHAR"]
    harmless = [
        rf"regexp_replace({name}, '^([{FORMULA_BEGINNINGS}])', '''\1') AS {name}" for name in texts
    ]
    return f"* REPLACE ({', '.join(harmless)})" if harmless else "*"


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
