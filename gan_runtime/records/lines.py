"""The whole lines of a journal, in pieces of a few megabytes: every reader of journals reads through here.

A journal may come from anybody: a pipe, a line of gigabytes, or a file of something else takes neither the memory nor the time of its reader.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from gan_runtime.base.errors import JournalError
from gan_runtime.records import run_files

MAX_LINE = 16_000_000  # bytes; the longest record, a call of 10,000 steps with 20 metrics, has 5 MB
MAX_BAD_LINES = 10_000  # of one journal; a crash tears one
PIECE_BYTES = 4_000_000


class BadLines:
    """Counts the lines of a journal that are no records."""

    def __init__(self, path: Path) -> None:
        self._name, self._count = path.name, 0

    def count(self) -> None:
        """One more. Raises JournalError where they are too many, such as in a file of something else."""
        self._count += 1
        if self._count > MAX_BAD_LINES:
            raise JournalError(f"{self._name} has more than {MAX_BAD_LINES:,} lines that are no records")


def pieces(path: Path, offset: int = 0, size: int = PIECE_BYTES) -> Iterator[bytes]:
    """What comes after byte `offset`: about `size` bytes at a time, each piece ending with a line. A last line without its newline is left out.

    Raises:
        JournalError: a line is longer than any record, or the file is no plain one. OSError: it cannot be read.
    """
    with os.fdopen(_plain(path), "rb") as file:
        file.seek(offset)
        while data := file.read(size):
            if not data.endswith(b"\n"):
                data += file.readline(MAX_LINE)
            end = data.rfind(b"\n") + 1
            if len(data) - end >= MAX_LINE:
                raise JournalError(f"{path.name} has a line of more than {MAX_LINE:,} bytes")
            if end:
                yield data[:end]
            if end < len(data):
                return


def _plain(path: Path) -> int:
    try:
        return run_files.plain(path)
    except run_files.NotPlainError as error:
        raise JournalError(f"{path.name} is {error.strerror}") from None
