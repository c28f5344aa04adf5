"""Image files: the kind of a file by its first bytes, the limits of a source of images, and a
folder as a source.

The kind of a file is read from its contents (`kind_of`), since users and browsers change names and
suffixes. Hidden files, which systems add, are counted and skipped; hidden folders, and those that
systems and programs leave, are skipped by name.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from gan_runtime.base import formats
from gan_runtime.base.errors import DatasetError, quoted
from gan_runtime.data.contract import Progress
from gan_runtime.data.summary import HIDDEN_FOLDER, LINK, NOT_READABLE, SYSTEM_FOLDER, Skip

HEADER_BYTES = 262  # a tar archive has its mark at the end of these
IMAGE, ZIP, HDF5 = "an image", "a zip file", "an HDF5 file"
WEB_PAGE, XML, JSON, LFS_POINTER = "a web page", "XML text", "JSON text", "a pointer of Git LFS"
NUMPY, ROOT, NETCDF_3, HDF4 = "a NumPy array", "a ROOT file", "a NetCDF 3 file", "an HDF4 file"
MACOS_METADATA, ZEROS = "metadata of macOS about another file", "a file of zeros"
TEXT, EMPTY = "text", "empty"
BMP, GIF, TIFF = "a BMP image", "a GIF image", "a TIFF or raw image"
HEIC, AVIF, JPEG_2000, PHOTOSHOP = (
    "a HEIC image",
    "an AVIF image",
    "a JPEG 2000 image",
    "a Photoshop image",
)
OTHER_FORMATS = (BMP, GIF, TIFF, HEIC, AVIF, JPEG_2000, PHOTOSHOP)
_SIGNATURES = (  # offset, bytes there, and the kind of the file
    (0, b"\xff\xd8\xff", IMAGE),
    (0, b"\x89PNG\r\n\x1a\n", IMAGE),
    (8, b"WEBP", IMAGE),
    (0, b"GIF8", GIF),
    (0, b"II*\0", TIFF),
    (0, b"MM\0*", TIFF),
    (0, b"8BPS", PHOTOSHOP),
    (4, b"jP  \r\n", JPEG_2000),
    *((4, b"ftyp" + brand, HEIC) for brand in (b"heic", b"heix", b"mif1", b"msf1")),
    *((4, b"ftyp" + brand, AVIF) for brand in (b"avif", b"avis")),
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
_BEGINNINGS = (  # of the contents, after blanks
    (re.compile(rb"BM.{4}\0{4}", re.DOTALL), BMP),
    (re.compile(rb"<!doctype|<html", re.IGNORECASE), WEB_PAGE),
    (re.compile(rb"<\?xml", re.IGNORECASE), XML),
    (re.compile(rb"\{"), JSON),
    (re.compile(rb"version https://git-lfs"), LFS_POINTER),
)
_CONTAINERS = re.compile("zip|archive|packed")

MAX_FILES = 2_000_000
MAX_MEMBERS = 2_500_000  # in a zip, including its folders
MAX_FILE_BYTES = 200_000_000  # per image; a photo of 100 million pixels has about 50 MB
MAX_BYTES = 200_000_000_000  # of all images in a zip after unpacking
UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)
_SYSTEM_FILES = ("Thumbs.db", "desktop.ini")
_SYSTEM_FOLDERS = {  # in lowercase
    "__macosx",  # of macOS in a zip
    "$recycle.bin",  # Windows
    "system volume information",
    "lost+found",  # Linux
    "@eadir",  # Synology
    "@tmp",
    "#recycle",
    "#snapshot",
    "@recycle",  # QNAP
    "@recently-snapshot",
}


def kind_of(file: BinaryIO) -> str:
    """The kind of a file, as the end of "it is …"; "" for an unknown kind.

    Raises OSError, or one of UNREADABLE for a damaged member of a zip.
    """
    header = file.read(HEADER_BYTES)
    for offset, signature, kind in _SIGNATURES:
        if header[offset : offset + len(signature)] == signature:
            return kind
    text = header.removeprefix(b"\xef\xbb\xbf").lstrip()
    return next((kind for beginning, kind in _BEGINNINGS if beginning.match(text)), "")


def is_text(header: bytes) -> bool:
    """Whether a file that begins with these bytes is text: it has no control characters."""
    return not any(byte < 9 or 13 < byte < 32 for byte in header)


def holds_files(kind: str) -> bool:
    """Whether a file of this kind can contain other files."""
    return bool(_CONTAINERS.search(kind))


def is_hidden(name: str) -> bool:
    """Whether a file is hidden, or was added by the system."""
    return (name.startswith(".") and name != ".") or name in _SYSTEM_FILES


def skipped_folder(path: str) -> Skip | None:
    """The outermost folder on the way to `path`, and itself, that is not read; None without any."""
    parts = path.split("/")
    for depth, name in enumerate(parts, 1):
        if name.lower() in _SYSTEM_FOLDERS:
            kind, reason = SYSTEM_FOLDER, "systems leave folders of this name"
        elif is_hidden(name):
            kind, reason = HIDDEN_FOLDER, "it is a hidden folder"
        else:
            continue
        return Skip.of(f"{'/'.join(parts[:depth])}/", kind, reason)
    return None


class ImageSource(Protocol):
    """A source of image files. `names`: sorted relative names, with "/". `skipped`: links, skipped
    or unreadable folders, and the like. `hidden`: the number of hidden files. `warning`: a sentence
    if names can be wrong, else "".
    """

    names: list[str]
    skipped: list[Skip]
    hidden: int
    warning: str

    def open(self, name: str) -> BinaryIO:
        """Opens a file. Raises one of UNREADABLE."""

    def size(self, name: str) -> int:
        """Bytes, as declared by the source."""

    def content(self, progress: Progress) -> str:
        """A hash of all names and bytes, in hexadecimal. Raises DatasetError for a read error."""


@dataclass
class FolderSource:
    """A folder as an ImageSource. Links are not followed, since they can leave the folder or form a
    loop.

    Raises DatasetError: the folder itself cannot be read, or has too many files.
    """

    root: Path
    names: list[str] = field(default_factory=list)
    skipped: list[Skip] = field(default_factory=list)
    hidden: int = 0
    warning: str = ""

    def __post_init__(self) -> None:
        waiting = [""]  # not recursive, since folders can be nested deeper than Python's stack
        while waiting:
            folder = waiting.pop()
            for name, kind in self._entries(folder):
                path = f"{folder}/{name}" if folder else name
                if kind == "folder" and (skip := skipped_folder(path)):
                    self.skipped.append(skip)
                elif is_hidden(name):
                    self.hidden += 1
                elif kind == "folder":
                    waiting.append(path)
                elif kind == "file":
                    self._add(path)
                else:
                    reason = "it is a link" if kind == LINK else "it is not a regular file"
                    self.skipped.append(Skip.of(path, kind, reason))
        self.names.sort()

    def _entries(self, folder: str) -> list[tuple[str, str]]:
        """Name and kind (folder, file, link or no file) of each entry; none of a sub-folder that
        cannot be read, which is skipped.
        """
        try:
            with os.scandir(self.root / folder) as entries:
                return sorted((entry.name, _kind_of_entry(entry)) for entry in entries)
        except OSError as error:
            if not folder:
                raise DatasetError(
                    f"{quoted(str(self.root))} cannot be read ({error.strerror}): give a folder"
                    " that you can read."
                ) from None
            reason = f"the folder cannot be read ({error.strerror})"
            self.skipped.append(Skip.of(f"{folder}/", NOT_READABLE, reason))
            return []

    def _add(self, name: str) -> None:
        self.names.append(name)
        if len(self.names) > MAX_FILES:
            raise DatasetError(
                f"{self.root} has more than {formats.count(MAX_FILES)} files: give a smaller"
                " folder."
            )

    def open(self, name: str) -> BinaryIO:
        """Opens only a regular file, since a link or a pipe can have replaced it."""
        number = os.open(self.root / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        return os.fdopen(number, "rb")

    def size(self, name: str) -> int:
        """Bytes of a file."""
        return (self.root / name).lstat().st_size

    def content(self, progress: Progress) -> str:
        """A hash of all names and bytes, in hexadecimal."""
        digest = hashlib.sha256()
        for number, name in enumerate(self.names):
            progress(number, len(self.names), "Reading the images")
            digest.update(os.fsencode(name) + b"\0")
            try:
                if self.size(name) > MAX_FILE_BYTES:  # skipped later; it can be a film of hours
                    continue
                with self.open(name) as file:
                    digest.update(
                        hashlib.file_digest(cast(io.BufferedReader, file), "sha256").digest()
                    )
            except OSError as error:
                digest.update(str(error.errno).encode())  # the file is skipped later
        return digest.hexdigest()


def _kind_of_entry(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return LINK
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "no file"
