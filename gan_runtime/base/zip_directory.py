"""Opens a zip from a stranger, whose list of members may be huge.

A zip ends with a list of its members, its central directory, at 46 bytes and a name each; Python
makes an object of several hundred bytes of each before they can be checked. So a file of 2 GB with
40 million unnamed members would fill the memory of most hosts. Here the list is refused by its size
before it is read, and then by its number of members.
"""

from __future__ import annotations

import contextlib
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

MEMBER_BYTES = 256  # of the list, on average: 46, a name, and extra fields
_END_BYTES = 70_000  # the end record, with a comment of up to 64 KiB
_MEMBER = b"PK\x01\x02"  # begins each member of the list


class CrowdedZipError(Exception):
    """A zip lists too many members."""


@contextlib.contextmanager
def open_zip(path: Path | int, most_members: int) -> Iterator[zipfile.ZipFile]:
    """The zip, with at most `most_members` members, of MEMBER_BYTES each in its list.

    `path`: or the descriptor of an open file, which is then closed.

    Raises:
        CrowdedZipError: it lists more, or its list is longer. What `zipfile.ZipFile` raises for
            a damaged one.
    """
    with _CountedReader(path, most_members) as file, zipfile.ZipFile(file) as bundle:
        file.counts = False
        yield bundle


class _CountedReader(io.BufferedReader):
    """Counts members while the zip is opened: Python reads its last bytes, then its whole list at
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
