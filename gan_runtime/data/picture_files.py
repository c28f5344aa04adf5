"""Where pictures come from: a folder or a zip file.

Names are looked through before anything is read; nothing is unpacked.

A zip from someone else may name files outside of its folder, be full of links, or grow without end: such a
file is refused as a whole. Hidden files, which systems add by themselves, are counted and left out.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from gan_runtime import zip_directory
from gan_runtime.data.contract import Progress
from gan_runtime.data.summary import Skip
from gan_runtime.errors import DatasetError, quoted
from gan_runtime.zip_directory import CrowdedZipError

MAX_FILES = 2_000_000
MAX_MEMBERS = 2_500_000  # of a zip, with its folders
MAX_FILE_BYTES = 200_000_000  # of one picture; a photo of 100 million pixels has about 50 MB
MAX_BYTES = 200_000_000_000  # of all pictures in a zip, unpacked
CHUNK_BYTES = 1 << 20
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")
UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)
_ENCRYPTED = 0x1  # of the flags of a member
_DRIVE = re.compile(r"[A-Za-z]:")
_OF_THE_SYSTEM = ("__MACOSX", "Thumbs.db", "desktop.ini")
_STEERING = re.compile("[\x00-\x1f\x7f-\x9f]")  # control characters


class Source(Protocol):
    """`names`: of the files, relative, with "/", sorted.

    `skipped`: links and the like. `hidden`: how many files are left out.
    """

    names: list[str]
    skipped: list[Skip]
    hidden: int

    def open(self, name: str) -> BinaryIO:
        """Raises one of UNREADABLE."""

    def size(self, name: str) -> int:
        """Bytes, as promised."""

    def content(self, progress: Progress) -> str:
        """A hash of all names and bytes, in hexadecimal.

        Raises DatasetError when something cannot be read.
        """


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Source]:
    """The pictures of a folder or a zip file.

    Raises:
        DatasetError: it is neither, or a zip that is damaged, or one that may not be read (see `ZipSource`).
    """
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no file can have that name"
        raise DatasetError(
            f"{quoted(str(path))} cannot be read ({reason}): give a folder or a .zip of pictures."
        ) from None
    if stat.S_ISDIR(mode):
        yield FolderSource(path)
        return
    if not stat.S_ISREG(mode):  # opening a pipe would wait for its other end
        raise DatasetError(
            f"{path} is neither a folder nor a plain file: give a folder or a .zip of pictures."
        )
    with contextlib.ExitStack() as stack:
        try:
            bundle = stack.enter_context(zip_directory.opened(path, MAX_MEMBERS))
        except CrowdedZipError:
            raise refused(path, f"lists more than {MAX_MEMBERS:,} files and folders") from None
        except UNREADABLE:
            raise DatasetError(
                f"{path.name} is no zip file, or damaged: give a folder, or a .zip that opens on this machine."
            ) from None
        yield ZipSource(path, bundle)


@dataclass
class FolderSource:
    """All plain files below a folder.

    Links are not followed: they may lead out of it, or round in a circle.
    """

    root: Path
    names: list[str] = field(default_factory=list)
    skipped: list[Skip] = field(default_factory=list)
    hidden: int = 0

    def __post_init__(self) -> None:
        for folder, folders, files in os.walk(self.root):
            folders.sort()
            place = Path(folder)
            for name in [name for name in folders if _is_hidden(name)]:
                folders.remove(name)
                self.hidden += 1
            for name in [name for name in folders if (place / name).is_symlink()] + sorted(files):
                self._sort_in(place / name)
        self.names.sort()

    def _sort_in(self, path: Path) -> None:
        name = path.relative_to(self.root).as_posix()
        if _is_hidden(path.name):
            self.hidden += 1
        elif path.is_symlink():
            self.skipped.append(Skip(name=readable(name), kind="link", reason="it is a link"))
        elif not path.is_file():
            self.skipped.append(Skip(name=readable(name), kind="no file", reason="it is no plain file"))
        else:
            self.names.append(name)
            if len(self.names) > MAX_FILES:
                raise DatasetError(f"{self.root} holds more than {MAX_FILES:,} files: give a smaller folder.")

    def open(self, name: str) -> BinaryIO:
        """See Source. Neither a link nor a pipe that has taken the file's place meanwhile is opened."""
        number = os.open(self.root / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        return os.fdopen(number, "rb")

    def size(self, name: str) -> int:
        """See Source."""
        return (self.root / name).lstat().st_size

    def content(self, progress: Progress) -> str:
        """See Source."""
        digest = hashlib.sha256()
        for number, name in enumerate(self.names):
            progress(number, len(self.names), "Reading the pictures")
            digest.update(os.fsencode(name) + b"\0")
            try:
                if self.size(name) > MAX_FILE_BYTES:  # it will be left out, and may be a film of many hours
                    continue
                with self.open(name) as file:
                    digest.update(hashlib.file_digest(cast(io.BufferedReader, file), "sha256").digest())
            except OSError as error:
                digest.update(str(error.errno).encode())  # it will be skipped, and its name told
        return digest.hexdigest()


@dataclass
class ZipSource:
    """The files of a zip.

    Raises:
        DatasetError: a name that leads out of the folder, a link, a password, or more than the limits.
    """

    path: Path
    bundle: zipfile.ZipFile
    names: list[str] = field(default_factory=list)
    skipped: list[Skip] = field(default_factory=list)
    hidden: int = 0
    _members: dict[str, zipfile.ZipInfo] = field(default_factory=dict)

    def __post_init__(self) -> None:
        members = [member for member in self.bundle.infolist() if not member.is_dir()]
        if len(members) > MAX_FILES:
            raise refused(
                self.path, f"holds {len(members):,} files, more than the {MAX_FILES:,} that are read"
            )
        if sum(member.file_size for member in members) > MAX_BYTES:
            raise refused(self.path, f"would unpack to more than {MAX_BYTES / 1e9:.0f} GB")
        for member in self.bundle.infolist():
            self._check(member)
        for member in members:
            if any(map(_is_hidden, member.filename.split("/"))):
                self.hidden += 1
            elif member.filename in self._members:
                reason = "the zip holds another file of this name"
                self.skipped.append(Skip(name=readable(member.filename), kind="twice", reason=reason))
            else:
                self._members[member.filename] = member
        self.names = sorted(self._members)

    def _check(self, member: zipfile.ZipInfo) -> None:
        name = member.orig_filename  # `filename` ends at a NUL
        parts = name.split("/")
        if "\0" in name or "\\" in name or ".." in parts or name.startswith("/") or _DRIVE.match(name):
            raise refused(self.path, f"holds {quoted(name)}, which leads out of the folder")
        if stat.S_ISLNK(member.external_attr >> 16):
            raise refused(self.path, f"holds the link {quoted(name)}")
        if member.flag_bits & _ENCRYPTED:
            raise DatasetError(f"{self.path.name} is encrypted: pack the pictures without a password.")

    def open(self, name: str) -> BinaryIO:
        """See Source. Never gives more than the member's header promises."""
        return cast(BinaryIO, self.bundle.open(self._members[name]))

    def size(self, name: str) -> int:
        """See Source."""
        return self._members[name].file_size

    def content(self, progress: Progress) -> str:
        """See Source: of the file as it is."""
        digest, size = hashlib.sha256(), self.path.stat().st_size
        try:
            with self.path.open("rb") as file:
                while chunk := file.read(CHUNK_BYTES):
                    progress(min(file.tell(), size), size, "Reading the file")
                    digest.update(chunk)
        except OSError as error:
            raise DatasetError(
                f"{self.path} cannot be read ({error.strerror}): look after its disk."
            ) from None
        return digest.hexdigest()


def refused(path: Path, reason: str) -> DatasetError:
    """About a zip that is refused as a whole."""
    return DatasetError(f"{path.name} {reason}, so nothing of it is read: pack the pictures themselves anew.")


def readable(name: str) -> str:
    """A file's name as text that can be stored and shown: names are bytes, not all of them are text, and some steer a terminal."""
    return _STEERING.sub("\N{REPLACEMENT CHARACTER}", name.encode("utf-8", "replace").decode())


def _is_hidden(name: str) -> bool:
    return (name.startswith(".") and name != ".") or name in _OF_THE_SYSTEM
