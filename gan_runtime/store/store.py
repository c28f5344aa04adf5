"""The results store: one DuckDB connection for the process that owns results.duckdb, one cursor per question.

DuckDB lets one process write a file and then no other read it, so the owner answers for everyone; a process that is not
the owner builds the same store in memory from the journals.
"""

from __future__ import annotations

import functools
import os
import re
import secrets
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

from gan_runtime.errors import HomeError, QueryError, StoreDamagedError, StoreError, StoreLockedError
from gan_runtime.home import command_line
from gan_runtime.store import metric_table, person
from gan_runtime.store.person import Answer, Limits

SCHEMA_VERSION = 8
_SCHEMA = Path(__file__).with_name("schema.sql")
_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
MEMORY = ":memory:"


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
    """Whether nothing could be written, such as on a full disk; else what was to be written is to blame."""
    return isinstance(error, _OF_THE_STORE)


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
        except StoreError:
            self._connection.close()
            raise

    def close(self) -> None:
        """Writes everything into the file and releases it."""
        self._connection.close()

    def frame(self, sql: str, parameters: Sequence[Any] | dict[str, Any] | None = None) -> pd.DataFrame:
        """The rows of a SELECT. Times come in UTC."""
        answer = self._answer(sql, parameters)
        return pd.DataFrame.from_records(answer.rows, columns=answer.columns)

    def rows(
        self, sql: str, parameters: Sequence[Any] | dict[str, Any] | None = None
    ) -> list[tuple[Any, ...]]:
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
                f"COPY (SELECT {columns} FROM {view} WHERE run_id IN ({marks})) TO '{_quoted(target)}' (FORMAT {form})",
                run_ids,
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
        layout = _layout(self._connection)
        if layout:
            self._check_version()
            self._check_layout(layout)
        self._connection.execute("SET GLOBAL TimeZone = 'UTC'")
        self._connection.execute(metric_table.view())
        self._connection.execute(_SCHEMA.read_text(encoding="utf-8"))
        if not layout:
            self._connection.execute("INSERT INTO ingest.version VALUES (?)", [SCHEMA_VERSION])
        self._connection.execute("CHECKPOINT")

    def _check_version(self) -> None:
        """Asked before anything else: views may name columns that an old file lacks."""
        rows: list[tuple[int | None]] = []
        with suppress(duckdb.CatalogException):
            rows = self._connection.execute("SELECT schema_version FROM ingest.version").fetchall()
        if len(rows) != 1 or rows[0][0] is None:
            raise StoreDamagedError(_changed(self.path, "it does not say of which version it is"))
        if rows[0][0] != SCHEMA_VERSION:
            raise StoreError(
                f"{self.path} has schema version {rows[0][0]}, this program writes {SCHEMA_VERSION}: "
                f"run `{command_line()} rebuild`, which keeps it aside and makes a new one from the journals."
            )

    def _check_layout(self, found: dict[str, list[str]]) -> None:
        for table, columns in _wanted_layout().items():
            if found.get(table) != columns:
                raise StoreDamagedError(
                    _changed(self.path, f"the table ingest.{table} is missing or has other columns")
                )


def _layout(connection: duckdb.DuckDBPyConnection) -> dict[str, list[str]]:
    """Names and types of the columns of each table in the schema `ingest`; empty for a new file."""
    rows = connection.execute(
        "SELECT table_name, list(column_name || ' ' || data_type ORDER BY column_index) FROM duckdb_columns() "
        "WHERE schema_name = 'ingest' AND table_name IN (SELECT table_name FROM duckdb_tables()) GROUP BY table_name"
    ).fetchall()
    return dict(rows)


@functools.cache
def _wanted_layout() -> dict[str, list[str]]:
    with duckdb.connect(MEMORY, config=_CONFIG) as connection:
        connection.execute(metric_table.view())
        connection.execute(_SCHEMA.read_text(encoding="utf-8"))
        return _layout(connection)


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
        # What does not fit into memory goes beside the file, or into a folder of its own in the system's: never into the
        # current one. A person's SQL may read in it, so nothing else lies there.
        spill = (
            f"{tempfile.gettempdir()}/duckdb-{os.getpid()}-{secrets.token_hex(4)}"
            if path is None
            else f"{path}.tmp"
        )
        return duckdb.connect(
            MEMORY if path is None else str(path), config={**_CONFIG, "temp_directory": spill}
        )
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
            raise HomeError(
                f"{path} cannot be written: change its rights, or choose another folder with --home DIR."
            ) from None
        raise StoreError(f"{path} cannot be opened: {text.splitlines()[0]}") from None
    except duckdb.Error as error:
        raise StoreDamagedError(_damaged(path, error)) from None


def _changed(path: Path | None, what: str) -> str:
    return (
        f"{path} was changed by another program ({what}): "
        f"run `{command_line()} rebuild`, which keeps it aside and makes a new one from the journals."
    )


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
