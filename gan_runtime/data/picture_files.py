"""What sources of pictures share: a folder (folder_source.py) or a zip file (zip_source.py). `picture_sources.opened` opens either.

Names are looked through before anything is read; nothing is unpacked. Hidden files, which systems add by themselves, are counted and
left out.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from pathlib import Path
from typing import BinaryIO, Protocol

from gan_runtime.base.errors import DatasetError
from gan_runtime.data.contract import Progress
from gan_runtime.data.summary import Skip

MAX_FILES = 2_000_000
MAX_MEMBERS = 2_500_000  # of a zip, with its folders
MAX_FILE_BYTES = 200_000_000  # of one picture; a photo of 100 million pixels has about 50 MB
MAX_BYTES = 200_000_000_000  # of all pictures in a zip, unpacked
UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)
NOT_READABLE = "not readable"  # the kind of what the system does not let this user read
_OF_THE_SYSTEM = ("__MACOSX", "Thumbs.db", "desktop.ini")
_STEERING = re.compile("[\x00-\x1f\x7f-\x9f]")  # control characters


class Source(Protocol):
    """`names`: of the files, relative, with "/", sorted.

    `skipped`: links, folders that cannot be read, and the like. `hidden`: how many files are left out. `warning`: a sentence where names
    may be wrong; else empty.
    """

    names: list[str]
    skipped: list[Skip]
    hidden: int
    warning: str

    def open(self, name: str) -> BinaryIO:
        """Raises one of UNREADABLE."""

    def size(self, name: str) -> int:
        """Bytes, as promised."""

    def content(self, progress: Progress) -> str:
        """A hash of all names and bytes, in hexadecimal.

        Raises DatasetError when something cannot be read.
        """


def refused(path: Path, reason: str) -> DatasetError:
    """About a zip that is refused as a whole."""
    return DatasetError(f"{path.name} {reason}, so nothing of it is read: pack the pictures themselves anew.")


def readable(name: str) -> str:
    """A file's name as text that can be stored and shown: names are bytes, not all of them are text, and some steer a terminal."""
    return _STEERING.sub("\N{REPLACEMENT CHARACTER}", name.encode("utf-8", "replace").decode())


def is_hidden(name: str) -> bool:
    """Whether a system has added it by itself, or somebody has hidden it."""
    return (name.startswith(".") and name != ".") or name in _OF_THE_SYSTEM
