"""What a file is by its first bytes: names and endings are whatever people and browsers made of them."""

from __future__ import annotations

import re
from typing import BinaryIO

HEADER_BYTES = 262  # as far as a tar archive says what it is
PICTURE, ZIP = "a picture", "a zip file"
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
    (0, b"\x89HDF\r\n", "an HDF5 file"),
    (0, b"\x00\x05\x16\x07", "a file of macOS with metadata alone"),
)
_OF_FILES = re.compile("zip|archive|packed")
_WEB_PAGE = re.compile(rb"(\xef\xbb\xbf)?\s*<(!doctype|html)", re.IGNORECASE)


def of(file: BinaryIO) -> str:
    """The end of "it is …"; empty where nobody can say. Raises OSError, and what a damaged member of a zip raises."""
    header = file.read(HEADER_BYTES)
    for place, signature, kind in _SIGNATURES:
        if header[place : place + len(signature)] == signature:
            return kind
    return "a web page" if _WEB_PAGE.match(header) else ""


def holds_files(kind: str) -> bool:
    """Whether other files may be in it."""
    return bool(_OF_FILES.search(kind))
