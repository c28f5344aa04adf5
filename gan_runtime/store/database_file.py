"""Opening results.duckdb with the tables of this version.

The file is derived from the journals, so its owner replaces an unusable one (StoreDamagedError). A
file of a newer version remains unchanged.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path

import duckdb

from gan_runtime.base import disk
from gan_runtime.base.errors import (
    HomeError,
    StoreDamagedError,
    StoreError,
    StoreKind,
    StoreLockedError,
    StoreNewerError,
)
from gan_runtime.records.home import command_line
from gan_runtime.store import record_tables
from gan_runtime.store.record_tables import TABLES, RecordTables

SCHEMA_VERSION = 14
MEMORY, _NEW_LAYOUT = ":memory:", "layout_of_a_new_file"
_SCHEMA = Path(__file__).with_name("schema.sql")
_DOMAINS = Path(__file__).parent.with_name("domains")
_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "allocator_background_threads": "true",  # they return unused memory to the system
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "max_vacuum_tasks": 0,  # see `merge_when_closed`
    "threads": max(1, min(4, (os.cpu_count() or 1) // 2)),  # a training needs the other cores
}
# DuckDB's messages about a file that it cannot read, as opposed to a temporary error of the system.
_UNREADABLE = (
    *("not a valid DuckDB", "Corrupt database", "Could not read", "Is a directory", "Extension"),
    *("storage version number", "while replaying", "WAL file", "Input/output error"),
)
_OF_THE_SYSTEM = (duckdb.IOException, duckdb.OutOfMemoryException, duckdb.ConnectionException)
_OF_A_PAGE = ("Corrupt database", "Could not read", "Input/output error")
_INVALID = "database has been invalidated"


def is_unreadable(error: BaseException) -> bool:
    """Whether a statement met a damaged part of the file."""
    return isinstance(error, duckdb.Error) and any(words in str(error) for words in _OF_A_PAGE)


def is_invalidated(error: BaseException) -> bool:
    """Whether DuckDB answers no statement until the file is reopened."""
    return isinstance(error, duckdb.FatalException | duckdb.InternalException) or (
        isinstance(error, duckdb.Error) and _INVALID in str(error)
    )


def connected(path: Path | None, tables: RecordTables = TABLES) -> duckdb.DuckDBPyConnection:
    """Opens or creates the file; without a path, a database in memory.

    Raises:
        StoreLockedError: another process has the file open; the message names it.
        StoreDamagedError: this version cannot use the file.
        StoreNewerError: a newer version of this program wrote it.
        StoreError, HomeError: it cannot be opened for now, or not be written.
    """
    connection = _connect(path)
    try:
        _create(connection, path, tables)
    except duckdb.Error as error:
        connection.close()
        raise _for_now(path, error) or _damaged(path, error) from None
    except StoreError:
        connection.close()
        raise
    return connection


def read_through(path: Path) -> None:
    """Reads every value of every table, to find damage.

    Raises as `connected`, and StoreDamagedError when a table cannot be read.
    """
    connection = connected(path)
    try:
        for table in _layout(connection):
            connection.execute(f"SELECT bit_xor(hash(line)) FROM ingest.{table} line").fetchall()
    except duckdb.Error as error:
        raise _for_now(path, error) or _damaged(path, error) from None
    finally:
        with suppress(duckdb.Error):  # a damaged file cannot be written
            connection.close()


def merge_when_closed(connection: duckdb.DuckDBPyConnection) -> None:
    """The checkpoint that closes the file merges the row groups of each table.

    Earlier checkpoints do not merge: that would write up to 2,048 images again each time, during a
    training and with that much memory (decision 24).
    """
    connection.execute("RESET GLOBAL max_vacuum_tasks")


def spill_folder(path: Path) -> Path:
    """The folder where DuckDB stores data that does not fit into memory; exists only
    while needed.
    """
    return path.with_name(f"{path.name}.tmp")


def _connect(path: Path | None) -> duckdb.DuckDBPyConnection:
    try:
        # Next to the file, or in a separate temporary folder: never in the current folder. SQL of
        # users may read in it, so it contains nothing else.
        spill = (
            f"{tempfile.gettempdir()}/duckdb-{os.getpid()}-{secrets.token_hex(4)}"
            if path is None
            else str(spill_folder(path))
        )
        return duckdb.connect(
            MEMORY if path is None else str(path), config={**_CONFIG, "temp_directory": spill}
        )
    except duckdb.Error as error:
        raise _refused(path, error) from None


def _refused(path: Path | None, error: duckdb.Error) -> StoreError | HomeError:
    text = str(error)
    if "Could not set lock" in text:
        holder = re.search(r"held in (.+?) \(PID (\d+)\)", text)
        who = f"process {holder[2]} ({holder[1]})" if holder else "another process"
        return StoreLockedError(
            f"{path} is open in {who}: end that process, or choose another folder with --home DIR."
        )
    if "ermission" in text or "Read-only" in text:
        return HomeError(
            f"{path} cannot be written: change its permissions, or choose another folder with"
            " --home DIR."
        )
    return _for_now(path, error) or _damaged(path, error)


def _for_now(path: Path | None, error: duckdb.Error) -> StoreError | HomeError | None:
    """The error for a cause outside the file that can be temporary."""
    if disk.is_full(error):
        return HomeError(f"the disk of {path} is full: free some space.")
    unreadable = any(words in str(error) for words in _UNREADABLE)
    if isinstance(error, _OF_THE_SYSTEM) and not unreadable:
        return StoreError(f"{path} cannot be opened: {str(error).splitlines()[0]}")
    return None


def _create(connection: duckdb.DuckDBPyConnection, path: Path | None, tables: RecordTables) -> None:
    has_tables = _has_tables(connection)
    layout = _layout(connection) if has_tables else {}
    if layout:
        _check_version(connection, path)
    elif has_tables:
        raise _unusable(path, "is a database of another program", StoreKind.FOREIGN)
    connection.execute("SET GLOBAL TimeZone = 'UTC'")
    if layout and _is_current(connection, layout, tables):
        return
    if layout:
        _check_layout(layout, _new_layout(connection, tables), path)
    make(connection, tables)
    if not layout:
        connection.execute("INSERT INTO ingest.version VALUES (?)", [SCHEMA_VERSION])
    connection.execute(
        "COMMENT ON TABLE ingest.version IS"
        f" '{_fingerprint(connection, _layout(connection), tables)}'"
    )
    connection.execute("CHECKPOINT")


def _is_current(
    connection: duckdb.DuckDBPyConnection, layout: dict[str, list[str]], tables: RecordTables
) -> bool:
    """Whether the file has the fingerprint of this version; comparing its tables takes 0.2 s."""
    fingerprints = connection.execute(
        "SELECT comment FROM duckdb_tables() WHERE schema_name = 'ingest' AND table_name ="
        " 'version'"
    ).fetchall()
    return fingerprints == [(_fingerprint(connection, layout, tables),)]


def _fingerprint(
    connection: duckdb.DuckDBPyConnection, layout: dict[str, list[str]], tables: RecordTables
) -> str:
    """A digest of the tables and views of the file, and of the statements of this version."""
    parts = [sorted(layout.items()), sorted(_views(connection).items()), *statements(tables)]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _check_version(connection: duckdb.DuckDBPyConnection, path: Path | None) -> None:
    """Raises an error for a file of another version. Called first, since views can name columns
    that an old file lacks.
    """
    rows: list[tuple[int | None]] = []
    with suppress(duckdb.CatalogException):
        rows = connection.execute("SELECT schema_version FROM ingest.version").fetchall()
    version = rows[0][0] if len(rows) == 1 else None
    if version is None:
        raise _changed(path, "it has no schema version")
    if version > SCHEMA_VERSION:
        raise StoreNewerError(
            f"{path} has schema version {version} of a newer program; this version writes"
            f" {SCHEMA_VERSION}: use the newer program, or run `{command_line()} rebuild`, which"
            " renames the file and builds a new one from the journals."
        )
    if version < SCHEMA_VERSION:
        raise _unusable(
            path,
            f"has schema version {version}, this program writes {SCHEMA_VERSION}",
            StoreKind.OLDER,
        )


def _check_layout(
    layout: dict[str, list[str]], expected: dict[str, list[str]], path: Path | None
) -> None:
    for table, columns in expected.items():
        if layout.get(table) != columns:
            raise _changed(path, f"the table ingest.{table} is missing or has other columns")


def _layout(connection: duckdb.DuckDBPyConnection) -> dict[str, list[str]]:
    """Names and types of the columns of each table in `ingest`; empty for a new file."""
    rows = connection.execute(
        "SELECT table_name, list(column_name || ' ' || data_type ORDER BY column_index) FROM"
        " duckdb_columns() WHERE database_name = current_database() AND schema_name = 'ingest' AND"
        " table_name IN (SELECT table_name FROM duckdb_tables() WHERE database_name ="
        " current_database()) GROUP BY table_name"
    ).fetchall()
    return dict(rows)


def tables_and_views(connection: duckdb.DuckDBPyConnection) -> tuple[list[str], dict[str, str]]:
    """Names of the tables, and the definition of each view."""
    names = connection.execute(
        "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'ingest' AND database_name ="
        " current_database()"
    ).fetchall()
    return [name for (name,) in names], _views(connection)


def _views(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    return dict(
        connection.execute(
            "SELECT view_name, sql FROM duckdb_views() WHERE NOT internal"
        ).fetchall()
    )


def _has_tables(connection: duckdb.DuckDBPyConnection) -> bool:
    return connection.execute("SELECT count(*) FROM duckdb_tables()").fetchall() != [(0,)]


def _new_layout(
    connection: duckdb.DuckDBPyConnection, tables: RecordTables
) -> dict[str, list[str]]:
    """The layout of a new file, created in memory by the same DuckDB, which is faster."""
    connection.execute(f"ATTACH '{MEMORY}' AS {_NEW_LAYOUT}")
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"USE {_NEW_LAYOUT}")
            make(cursor, tables)
            return _layout(cursor)
    finally:
        connection.execute(f"DETACH {_NEW_LAYOUT}")


def make(connection: duckdb.DuckDBPyConnection, tables: RecordTables = TABLES) -> None:
    """Creates missing tables and views."""
    for statement in statements(tables):
        connection.execute(statement)


def statements(tables: RecordTables = TABLES) -> list[str]:
    """The statements that create the tables and views of this version."""
    files = (path.read_text(encoding="utf-8") for path in (_SCHEMA, *_domain_views()))
    return [
        "CREATE SCHEMA IF NOT EXISTS ingest",
        record_tables.metrics_view(),
        *tables.statements(),
        *files,
    ]


def domain_views() -> list[str]:
    """Names of the public views of domains."""
    texts = (path.read_text(encoding="utf-8") for path in _domain_views())
    return [
        name
        for text in texts
        for name in re.findall(r"^CREATE OR REPLACE VIEW (\w+) AS", text, re.MULTILINE)
    ]


def _domain_views() -> list[Path]:
    return sorted(_DOMAINS.glob("*/views.sql"))


def _changed(path: Path | None, what: str) -> StoreDamagedError:
    return _unusable(path, f"was changed by another program ({what})", StoreKind.DAMAGED)


def _damaged(path: Path | None, error: Exception) -> StoreDamagedError:
    first = (str(error).splitlines() or [""])[0].replace(f' "{path}"', "")
    return _unusable(path, f"is not a usable DuckDB database ({first})", StoreKind.DAMAGED)


def _unusable(path: Path | None, problem: str, kind: StoreKind) -> StoreDamagedError:
    message = (
        f"{path} {problem}: run `{command_line()} rebuild`, which renames it and builds a new one"
        " from the journals."
    )
    return StoreDamagedError(message, problem, kind)
