"""Ways to damage results.duckdb, each applied to an intact file that no process has open."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb

WRITE = """
import random, sys
with open(sys.argv[1], "r+b") as file:
    for place in range(int(sys.argv[2]), int(sys.argv[3]), 4096):
        file.seek(place); file.write(random.randbytes(64))
"""
HEADERS = 3 * 4_096  # of a DuckDB file; blocks follow
BLOCK = 262_144


def spoil(path: Path, begin: int, end: int) -> None:
    """Writes random bytes into each page between two offsets.

    Uses another process, because closing the file would release the locks of this one.
    """
    subprocess.run([sys.executable, "-c", WRITE, str(path), str(begin), str(end)], check=True)


def no_magic(path: Path) -> None:
    """Overwrites the magic bytes of a database."""
    spoil(path, 0, 1)


def first_block(path: Path) -> None:
    """Overwrites the beginning of the catalog."""
    spoil(path, HEADERS, HEADERS + 4_096)


def middle(path: Path) -> None:
    """The file opens, but its tables cannot be read."""
    for begin in _blocks(path):
        if _opens_without(path, begin):
            spoil(path, begin, begin + BLOCK)


def last_block(path: Path) -> None:
    """Overwrites the last block that opening the file reads."""
    begin = max(begin for begin in _blocks(path) if not _opens_without(path, begin))
    spoil(path, begin, begin + BLOCK)


def _blocks(path: Path) -> range:
    """The offsets of the blocks after the first, which begins the catalog."""
    return range(HEADERS + BLOCK, path.stat().st_size, BLOCK)


def _opens_without(path: Path, begin: int) -> bool:
    """Whether a copy opens whose block at an offset is overwritten."""
    copy = path.with_name(f"{path.name}.{begin}")
    content = bytearray(path.read_bytes())
    content[begin : begin + BLOCK] = bytes(BLOCK)
    copy.write_bytes(content)
    try:
        duckdb.connect(str(copy)).close()
    except duckdb.Error:
        return False
    finally:
        copy.unlink()
    return True


def cut(path: Path) -> None:
    """Truncates the file to half its size."""
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    """Truncates the file to zero bytes."""
    os.truncate(path, 0)


def text(path: Path) -> None:
    """Replaces the database with text."""
    path.write_bytes(b"not a database" * 1_000)


def folder(path: Path) -> None:
    """Replaces the database with a non-empty folder."""
    path.unlink()
    path.mkdir()
    (path / "mine.txt").write_text("mine")


def log_of_another(path: Path) -> None:
    """Adds the write-ahead log of another database."""
    other = path.with_name("other")
    script = (
        f"import duckdb, os; c = duckdb.connect({str(other)!r}); c.execute('CREATE TABLE x AS"
        " SELECT 1'); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", script], check=False)
    shutil.move(f"{other}.wal", f"{path}.wal")
    other.unlink()


def foreign(path: Path) -> None:
    """Replaces the database with one of another program."""
    path.unlink()
    with duckdb.connect(str(path)) as other:
        other.execute("CREATE TABLE mine AS SELECT 42 AS answer")


def by_hand(path: Path) -> None:
    """Drops a table."""
    with duckdb.connect(str(path)) as other:
        other.execute("DROP TABLE ingest.offsets")


def newer_duckdb(path: Path) -> None:
    """Sets a newer version in the main header, with the matching checksum."""
    content = bytearray(path.read_bytes())
    content[12:20] = (1_899).to_bytes(8, "little")
    content[:8] = _checksum(bytes(content[8:4_096])).to_bytes(8, "little")
    path.write_bytes(content)


def _checksum(content: bytes) -> int:
    """DuckDB's checksum of a header."""
    answer = 5_381
    for place in range(0, len(content), 8):
        answer ^= int.from_bytes(content[place : place + 8], "little") * 0xBF58476D1CE4E5B9 % 2**64
    return answer


WAYS: dict[str, tuple[Callable[[Path], None], str]] = {
    "no magic": (no_magic, "not a valid DuckDB database file"),
    "first block": (first_block, "Corrupt database file"),
    "middle": (middle, "Corrupt database file"),
    "last block": (last_block, "Corrupt database file"),
    "cut": (cut, "Could not read"),
    "empty": (empty, "not a valid DuckDB database file"),
    "text": (text, "not a valid DuckDB database file"),
    "folder": (folder, "Is a directory"),
    "log of another": (log_of_another, "WAL"),
    "foreign": (foreign, "is a database of another program"),
    "by hand": (by_hand, "the table ingest.offsets is missing"),
    "newer DuckDB": (newer_duckdb, "storage version number 1899"),
}
