"""What sources of pictures share: a folder (picture_sources.py) or a zip file (zip_source.py).

`picture_sources.opened` opens either.

Names are looked through before anything is read; nothing is unpacked. Hidden files, which systems
add by themselves, are counted and left out. What a file is say its first bytes (`of`): names and
endings are whatever people and browsers made of them.
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

HEADER_BYTES = 262  # as far as a tar archive says what it is
PICTURE, ZIP, HDF5 = "a picture", "a zip file", "an HDF5 file"
WEB_PAGE, XML, JSON, LFS_POINTER = "a web page", "XML text", "JSON text", "a pointer of Git LFS"
NUMPY, ROOT, NETCDF_3, HDF4 = "a NumPy array", "a ROOT file", "a NetCDF 3 file", "an HDF4 file"
MACOS_METADATA, ZEROS = "what macOS stores about another file", "only zeros at its beginning"
_SIGNATURES = (  # bytes at a place, and what a file with them is
    (0, b"\xff\xd8\xff", PICTURE),
    (0, b"\x89PNG\r\n\x1a\n", PICTURE),
    (8, b"WEBP", PICTURE),
    (0, b"PK\x03\x04", ZIP),
    (0, b"PK\x05\x06", ZIP),
    (0, b"PK\x07\x08", "a zip file in several parts"),
    (0, b"Rar!\x1a\x07", "a RAR archive"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (257, b"ustar", "a tar archive"),
    (0, b"\x1f\x8b", "packed with gzip"),
    (0, b"BZh", "packed with bzip2"),
    (0, b"\xfd7zXZ\0", "packed with xz"),
    (0, b"\x28\xb5\x2f\xfd", "packed with Zstandard"),
    (0, b"\x89HDF\r\n\x1a\n", HDF5),
    (0, b"\x0e\x03\x13\x01", HDF4),
    (0, b"\x93NUMPY", NUMPY),
    (0, b"root\0", ROOT),
    (0, b"CDF", NETCDF_3),
    (0, b"\x00\x05\x16\x07", MACOS_METADATA),
    (0, bytes(16), ZEROS),
)
_TEXTS = (  # how a text begins, after blanks
    (re.compile(rb"<!doctype|<html", re.IGNORECASE), WEB_PAGE),
    (re.compile(rb"<\?xml", re.IGNORECASE), XML),
    (re.compile(rb"\{"), JSON),
    (re.compile(rb"version https://git-lfs"), LFS_POINTER),
)
_OF_FILES = re.compile("zip|archive|packed")


def of(file: BinaryIO) -> str:
    """The end of "it is …"; empty for a kind that is not listed.

    Raises OSError, and what a damaged member of a zip raises.
    """
    header = file.read(HEADER_BYTES)
    for place, signature, kind in _SIGNATURES:
        if header[place : place + len(signature)] == signature:
            return kind
    text = header.removeprefix(b"\xef\xbb\xbf").lstrip()
    return next((kind for beginning, kind in _TEXTS if beginning.match(text)), "")


def holds_files(kind: str) -> bool:
    """Whether other files may be in it."""
    return bool(_OF_FILES.search(kind))


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

    `skipped`: links, folders that cannot be read, and the like. `hidden`: how many files are left
    out. `warning`: a sentence where names may be wrong; else empty.
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
    return DatasetError(
        f"{path.name} {reason}, so nothing of it is read: pack the pictures themselves anew."
    )


def readable(name: str) -> str:
    """A file's name as text that can be stored and shown: names are bytes, not all of them
    are text, and some steer a terminal.
    """
    return _STEERING.sub("\N{REPLACEMENT CHARACTER}", name.encode("utf-8", "replace").decode())


def is_hidden(name: str) -> bool:
    """Whether a system has added it by itself, or somebody has hidden it."""
    return (name.startswith(".") and name != ".") or name in _OF_THE_SYSTEM
