"""The results store: one DuckDB connection for the process that owns results.duckdb, one cursor per question.

DuckDB lets one process write a file and then no other read it, so the owner answers for everyone; a process that is not
the owner builds the same store in memory from the journals.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

from gan_runtime.errors import HomeError, QueryError, StoreDamagedError, StoreError, StoreLockedError
from gan_runtime.home import command_line
from gan_runtime.store import person
from gan_runtime.store.person import Answer, Limits

SCHEMA_VERSION = 2
_SCHEMA = Path(__file__).with_name("schema.sql")
_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
MEMORY = ":memory:"


class Store:
    """Opened once per process and handed to whoever asks; safe to use from several threads."""

    def __init__(self, path: Path | None = None) -> None:
        """Opens or creates the file; without a path, a store in memory.

        Raises:
            StoreLockedError: another process holds the file; the message names it.
            StoreDamagedError: the file is no DuckDB database.
            StoreError: it was written by another version of this project.
            HomeError: the file cannot be written.
        """
        self.path = path
        self._connection = _connect(path)
        self._writing = threading.Lock()
        try:
            self._create()
        except duckdb.Error as error:
            self._connection.close()
            raise StoreDamagedError(_damaged(path, error)) from None

    def close(self) -> None:
        """Writes everything into the file and releases it."""
        self._connection.close()

    def frame(self, sql: str, parameters: Sequence[Any] | dict[str, Any] | None = None) -> pd.DataFrame:
        """The rows of a SELECT. Times come in UTC."""
        answer = self._answer(sql, parameters)
        return pd.DataFrame.from_records(answer.rows, columns=answer.columns)

    def rows(self, sql: str, parameters: Sequence[Any] | dict[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """The rows of a SELECT as tuples."""
        with self._cursor() as cursor:
            return cursor.execute(sql, parameters).fetchall()

    def person_answer(self, sql: str, limits: Limits = Limits()) -> Answer:  # noqa: B008  (frozen)
        """One statement that a person typed. Afterwards this store reads and writes no file any more.

        Raises as `person.answer`.
        """
        return person.answer(self._connection.cursor(), sql, limits)

    def copy_view(self, view: str, run_ids: list[str], target: Path) -> None:
        """Writes the rows of some runs of a view into a .parquet or .csv file; the ending decides.

        In CSV a text that a spreadsheet would compute (it begins with = + - @ or a tab) gets an apostrophe before it.
        """
        if target.suffix == ".csv" and view == "samples":
            raise QueryError("samples hold pictures, which do not fit into CSV: export them as Parquet.")
        marks = ", ".join("?" for _ in run_ids)
        with self._cursor() as cursor:
            columns = "*" if target.suffix == ".parquet" else _harmless_columns(cursor, view)
            form = "PARQUET" if target.suffix == ".parquet" else "CSV, HEADER"
            cursor.execute(
                f"COPY (SELECT {columns} FROM {view} WHERE run_id IN ({marks})) TO '{_quoted(target)}' (FORMAT {form})", run_ids
            )

    @contextmanager
    def transaction(self) -> Iterator[Writer]:
        """All or nothing: rows and the journal offset that they came from are committed together."""
        with self._writing, self._cursor() as cursor:
            cursor.execute("BEGIN")
            try:
                yield Writer(cursor)
            except BaseException:
                cursor.execute("ROLLBACK")
                raise
            cursor.execute("COMMIT")

    @contextmanager
    def _cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        cursor = self._connection.cursor()
        try:
            yield cursor
        finally:
            cursor.close()

    def _answer(self, sql: str, parameters: Sequence[Any] | dict[str, Any] | None = None) -> Answer:
        with self._cursor() as cursor:
            cursor.execute(sql, parameters)
            return Answer([column[0] for column in cursor.description or []], cursor.fetchall())

    def _create(self) -> None:
        found = self._version()
        if found not in (None, SCHEMA_VERSION):
            self._connection.close()
            raise StoreError(
                f"{self.path} has schema version {found}, this program writes {SCHEMA_VERSION}: "
                f"run `{command_line()} rebuild`, which keeps it aside and makes a new one from the journals."
            )
        self._connection.execute("SET GLOBAL TimeZone = 'UTC'")
        self._connection.execute(_SCHEMA.read_text(encoding="utf-8"))
        if found is None:
            self._connection.execute("INSERT INTO ingest.version VALUES (?)", [SCHEMA_VERSION])
        self._connection.execute("CHECKPOINT")

    def _version(self) -> int | None:
        """That of the file; None when it is new. Asked before anything is made: views may name columns that an old file lacks."""
        tables = "SELECT 1 FROM information_schema.tables WHERE table_schema = 'ingest' AND table_name = 'version'"
        if not self._connection.execute(tables).fetchall():
            return None
        found = self._connection.execute("SELECT schema_version FROM ingest.version").fetchone()
        return int(found[0]) if found else None


class Writer:
    """The writing side of one transaction."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self._cursor = cursor

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        """Runs one statement that gives no rows."""
        self._cursor.execute(sql, parameters).fetchall()

    def append(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Adds rows to `ingest.<table>`, in the order of its columns."""
        with self._cursor.appender(f"ingest.{table}") as appender:
            appender.append_rows(list(rows))


def _connect(path: Path | None) -> duckdb.DuckDBPyConnection:
    try:
        return duckdb.connect(MEMORY if path is None else str(path), config=_CONFIG)
    except duckdb.IOException as error:
        text = str(error)
        if "Could not set lock" in text:
            holder = re.search(r"held in (.+?) \(PID (\d+)\)", text)
            who = f"process {holder[2]} ({holder[1]})" if holder else "another process"
            raise StoreLockedError(
                f"{path} is held by {who}: end that process, or choose another folder with --home DIR."
            ) from None
        if "not a valid DuckDB" in text:
            raise StoreDamagedError(_damaged(path, error)) from None
        if "ermission" in text or "Read-only" in text:
            raise HomeError(f"{path} cannot be written: change its rights, or choose another folder with --home DIR.") from None
        raise StoreError(f"{path} cannot be opened: {text.splitlines()[0]}") from None
    except duckdb.Error as error:
        raise StoreDamagedError(_damaged(path, error)) from None


def _damaged(path: Path | None, error: Exception) -> str:
    first = (str(error).splitlines() or [""])[0]
    return f"{path} is not a usable DuckDB database ({first}): run `{command_line()} rebuild`, which keeps it aside and makes a new one from the journals."


def _harmless_columns(cursor: duckdb.DuckDBPyConnection, view: str) -> str:
    """The columns of a view, so that a spreadsheet takes no text for a formula."""
    texts = [row[0] for row in cursor.execute(f"DESCRIBE {view}").fetchall() if row[1] == "VARCHAR"]
    harmless = [rf"regexp_replace({name}, '^([=+@\t\r-])', '''\1') AS {name}" for name in texts]
    return f"* REPLACE ({', '.join(harmless)})" if harmless else "*"


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
