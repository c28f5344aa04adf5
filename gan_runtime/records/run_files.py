"""Files in the folders of runs and jobs, and zips: names of journals, and safe reading, since files
can come from other users.

Only regular files are opened, so no reader blocks. Journals are read as whole lines in pieces of a
few megabytes, so a pipe, a line of gigabytes or a foreign file takes little memory and time.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import stat
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from gan_runtime.base.errors import JournalError, PictureError

# ---- time ----------------------------------------------------------------------------------------


def now_in(folder: Path) -> float:
    """The current time by the clock of the folder's file system. Raises OSError."""
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(b".")
        file.flush()
        return os.fstat(file.fileno()).st_mtime


# ---- names of journals ---------------------------------------------------------------------------


LAUNCHER, _SUPERVISOR = "journal-launcher.jsonl", "journal-supervisor.jsonl"
EVALUATIONS = "journal-evaluations.jsonl"
EARLIER_JOURNALS = ("surface", "physics", "flow")  # of version 0.2.0, one per evaluation
FILMS_FOLDER = "flow"
ANSWERS_AFTER = 10**15  # beyond every offset in another journal
# Precedence: launcher, workers by rank, then the owner, which sees only that a process exited.
_FIRST_WORKER = 10_000_000
_NAME = re.compile(
    rf"journal-(supervisor|launcher|evaluations|{'|'.join(EARLIER_JOURNALS)}|[0-9]{{1,6}})\.jsonl"
)


def is_journal(name: str) -> bool:
    """Whether a file of this name is a journal of a run."""
    return _NAME.fullmatch(name) is not None


def is_of_evaluations(name: str) -> bool:
    """Whether a journal contains answers of evaluations, of this version or version 0.2.0."""
    return is_journal(name) and rank(name) is None and name not in (LAUNCHER, _SUPERVISOR)


def rank(name: str) -> int | None:
    """The rank of a worker's journal; None for other journals."""
    number = name.removeprefix("journal-").removesuffix(".jsonl")
    return int(number) if number.isdecimal() else None


def source(name: str) -> int:
    """The precedence of a journal for the state of the run; the highest wins."""
    if name == LAUNCHER:
        return _FIRST_WORKER + 1
    worker = rank(name)
    return 0 if worker is None else _FIRST_WORKER - worker


def answer_place(name: str, place: int) -> int:
    """Orders a run's answers without clocks: those in the common journal are newer."""
    return place + (ANSWERS_AFTER if name == EVALUATIONS else 0)


# ---- regular files -------------------------------------------------------------------------------


MAX_BYTES = 16_000_000  # of a small file; the results of a job take some kilobytes


class NotPlainError(OSError):
    """The path is a folder, pipe, socket or device."""


def plain(path: Path) -> int:
    """The descriptor of a regular file or a link to one, which the caller closes.

    Raises:
        NotPlainError: it is no regular file; opening a pipe would block, opening a device can have
            effects.
        OSError: it is missing or cannot be read.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise _not_plain(path)
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(file).st_mode):  # the file was replaced in the meantime
        os.close(file)
        raise _not_plain(path)
    return file


def appending(path: Path) -> int:
    """The descriptor of a file to append to, created if missing. Raises as `plain`."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, 0o666)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise _not_plain(path)
    return file


def content(path: Path) -> bytes:
    """The content of a small file. Raises as `plain`, and OSError above MAX_BYTES."""
    with os.fdopen(plain(path), "rb") as file:
        data = read(file, MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return data


def read(file: BinaryIO, most_bytes: int) -> bytes:
    """The rest of a file, up to `most_bytes`. Python's own `read` would allocate that
    many at once.
    """
    return file.read(min(most_bytes, os.fstat(file.fileno()).st_size + 1))


def tail(path: Path, most_bytes: int) -> bytes:
    """The last bytes of a file. Raises as `plain`."""
    with os.fdopen(plain(path), "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - most_bytes))
        return read(file, most_bytes)


def _not_plain(path: Path) -> NotPlainError:
    return NotPlainError(errno.EINVAL, "not a regular file", str(path))


def opened(folder: Path, name: str) -> int:
    """The descriptor of a file that a record names, which the caller closes.

    `name`: without a "/". Neither the folder nor the file can be a link or a pipe.

    Raises PictureError; its message is the end of a sentence.
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
        raise PictureError("it is not a regular file")
    return file


# ---- lines of journals ---------------------------------------------------------------------------


MAX_LINE = 16_000_000  # bytes; the longest record, a call of 10,000 steps with 20 metrics, has 5 MB
MAX_BAD_LINES = 10_000  # per journal; each crash tears one line
PIECE_BYTES = 4_000_000


class BadLines:
    """Counts the invalid lines of a journal."""

    def __init__(self, path: Path) -> None:
        self._name, self._count = path.name, 0

    def count(self) -> None:
        """Counts one line. Raises JournalError above MAX_BAD_LINES."""
        self._count += 1
        if self._count > MAX_BAD_LINES:
            raise JournalError(f"{self._name} has more than {MAX_BAD_LINES:,} invalid lines")


def pieces(path: Path, offset: int = 0, size: int = PIECE_BYTES) -> Iterator[bytes]:
    """Lines after byte `offset` in pieces of about `size` bytes, without an unfinished last line.

    Raises JournalError for a line that is too long or a file that is not regular, and OSError.
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


# ---- zips of strangers ---------------------------------------------------------------------------


# A zip ends with a list of its members, each 46 bytes and a name. Python turns each into an object
# of several hundred bytes before it can be checked, so a list of 2 GB, with 40 million unnamed
# members, would fill the memory of most hosts. Therefore a list is refused by its size before it is
# read, then by its number of members.
MEMBER_BYTES = 256  # average in the list: 46, a name, and extra fields
_END_BYTES = 70_000  # the end record, with a comment of up to 64 KiB
_MEMBER = b"PK\x01\x02"  # begins each member of the list


class CrowdedZipError(Exception):
    """A zip lists too many members."""


@contextlib.contextmanager
def open_zip(path: Path | int, most_members: int) -> Iterator[zipfile.ZipFile]:
    """Opens a zip with at most `most_members` members, each of MEMBER_BYTES in its list on average.

    `path`: a path, or the descriptor of an open file, which is closed at the end.

    Raises:
        CrowdedZipError: it lists more, or its list is longer. What `zipfile.ZipFile` raises for
            a damaged one.
    """
    with _CountedReader(path, most_members) as file, zipfile.ZipFile(file) as bundle:
        file.counts = False
        yield bundle


class _CountedReader(io.BufferedReader):
    """Counts members while Python opens the zip: it reads the last bytes, then the whole list at
    once.
    """

    def __init__(self, path: Path | int, most_members: int) -> None:
        super().__init__(io.FileIO(path))
        self._most_members = most_members
        self.counts = True

    def read(self, size: int | None = -1, /) -> bytes:
        """Raises CrowdedZipError for a list that is too long."""
        if not self.counts:
            return super().read(size)
        if size is not None and size > self._most_members * MEMBER_BYTES + _END_BYTES:
            raise CrowdedZipError
        content = super().read(size)
        if content.count(_MEMBER) > self._most_members:
            raise CrowdedZipError
        return content
