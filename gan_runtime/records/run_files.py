"""Files of the folders of runs and jobs.

These come from other people too: nothing but a plain file is opened, and nothing is waited for.

Every reader of journals takes whole lines through here, in pieces of a few megabytes: a pipe, a
line of gigabytes, or a file of something else takes neither the memory nor the time of its reader.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from gan_runtime.base.errors import JournalError, PictureError

MAX_BYTES = 16_000_000  # of a small file; the results of a job take some kilobytes


class NotPlainError(OSError):
    """A folder, a pipe, a socket or a device."""


def plain(path: Path) -> int:
    """The number of the open file, which the caller closes.

    A link to a plain file is one: archives of data keep files so.

    Raises:
        NotPlainError: it is something else. Opening a pipe would wait for its other end; a device
            may do something when it is opened.
        OSError: it is missing, or cannot be read.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise _not_plain(path)
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(file).st_mode):  # replaced meanwhile
        os.close(file)
        raise _not_plain(path)
    return file


def appending(path: Path) -> int:
    """The number of a file to write at the end of, made where it is missing. Raises as `plain`."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, 0o666)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise _not_plain(path)
    return file


def content(path: Path) -> bytes:
    """Of a small file, whole. Raises as `plain`; OSError also where it has more than MAX_BYTES."""
    with os.fdopen(plain(path), "rb") as file:
        held = read(file, MAX_BYTES + 1)
    if len(held) > MAX_BYTES:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return held


def read(file: BinaryIO, most_bytes: int) -> bytes:
    """The rest of a plain file, `most_bytes` at most; Python would make room for so many,
    however small the file is.
    """
    return file.read(min(most_bytes, os.fstat(file.fileno()).st_size + 1))


def tail(path: Path, most_bytes: int) -> bytes:
    """The last bytes of a file. Raises as `plain`."""
    with os.fdopen(plain(path), "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - most_bytes))
        return read(file, most_bytes)


def _not_plain(path: Path) -> NotPlainError:
    return NotPlainError(errno.EINVAL, "no plain file", str(path))


def opened(folder: Path, name: str) -> int:
    """A file that a record names: the number of the open file, which the caller closes.

    `name`: without a "/". Neither the folder nor the file may be a link, nor a pipe: opening one
    would wait for ever.

    Raises:
        PictureError: there is no such file; the message says why, as the end of a sentence.
    """
    try:
        place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=place)
        finally:
            os.close(place)
    except FileNotFoundError:
        raise PictureError("the file is missing") from None
    except OSError as error:
        raise PictureError(f"it cannot be read ({error.strerror})") from None
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise PictureError("it is no plain file")
    return file


MAX_LINE = 16_000_000  # bytes; the longest record, a call of 10,000 steps with 20 metrics, has 5 MB
MAX_BAD_LINES = 10_000  # of one journal; a crash tears one
PIECE_BYTES = 4_000_000


class BadLines:
    """Counts the lines of a journal that are no records."""

    def __init__(self, path: Path) -> None:
        self._name, self._count = path.name, 0

    def count(self) -> None:
        """One more.

        Raises JournalError where they are too many, such as in a file of something else.
        """
        self._count += 1
        if self._count > MAX_BAD_LINES:
            raise JournalError(
                f"{self._name} has more than {MAX_BAD_LINES:,} lines that are no records"
            )


def pieces(path: Path, offset: int = 0, size: int = PIECE_BYTES) -> Iterator[bytes]:
    """What comes after byte `offset`: about `size` bytes at a time, each piece ending with a line.

    A last line without its newline is left out.

    Raises:
        JournalError: a line is longer than any record, or the file is no plain one. OSError: it
            cannot be read.
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
        return plain(path)
    except NotPlainError as error:
        raise JournalError(f"{path.name} is {error.strerror}") from None
