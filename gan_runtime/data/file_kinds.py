"""What a file is by its first bytes: names and endings are whatever people and browsers made of them."""

from __future__ import annotations

import re
from typing import BinaryIO

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
    """The end of "it is …"; empty for a kind that is not listed. Raises OSError, and what a damaged member of a zip raises."""
    header = file.read(HEADER_BYTES)
    for place, signature, kind in _SIGNATURES:
        if header[place : place + len(signature)] == signature:
            return kind
    text = header.removeprefix(b"\xef\xbb\xbf").lstrip()
    return next((kind for beginning, kind in _TEXTS if beginning.match(text)), "")


def holds_files(kind: str) -> bool:
    """Whether other files may be in it."""
    return bool(_OF_FILES.search(kind))
