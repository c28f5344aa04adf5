"""Opens a folder or a zip file of pictures, whichever a path is, and says which of its files
are pictures.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

from gan_runtime.base import zip_directory
from gan_runtime.base.errors import DatasetError, quoted
from gan_runtime.base.zip_directory import CrowdedZipError
from gan_runtime.data import picture_files, zip_source
from gan_runtime.data.contract import Progress
from gan_runtime.data.picture_files import UNREADABLE, Source, is_hidden, readable
from gan_runtime.data.summary import Skip
from gan_runtime.data.zip_source import ZipSource


@dataclass
class FolderSource:
    """See `picture_files.Source`.

    Links are not followed: they may lead out of the folder, or round in a circle.

    Raises DatasetError: the folder itself cannot be read, or holds too many files.
    """

    root: Path
    names: list[str] = field(default_factory=list)
    skipped: list[Skip] = field(default_factory=list)
    hidden: int = 0
    warning: str = ""

    def __post_init__(self) -> None:
        waiting = [""]  # not recursive: folders may be nested deeper than Python's stack
        while waiting:
            folder = waiting.pop()
            for name, kind in self._entries(folder):
                path = f"{folder}/{name}" if folder else name
                if is_hidden(name):
                    self.hidden += 1
                elif kind == "folder":
                    waiting.append(path)
                elif kind == "file":
                    self._add(path)
                else:
                    reason = "it is a link" if kind == "link" else "it is no plain file"
                    self.skipped.append(Skip(name=readable(path), kind=kind, reason=reason))
        self.names.sort()

    def _entries(self, folder: str) -> list[tuple[str, str]]:
        """What is in a folder: names, and whether each is a folder, a file, a link or no file.

        Skips a folder that cannot be read.
        """
        try:
            with os.scandir(self.root / folder) as entries:
                return sorted((entry.name, _kind_of_entry(entry)) for entry in entries)
        except OSError as error:
            if not folder:
                raise DatasetError(
                    f"{quoted(str(self.root))} cannot be read ({error.strerror}): give a folder"
                    " that you may read."
                ) from None
            reason = f"the folder cannot be read ({error.strerror})"
            self.skipped.append(
                Skip(name=readable(f"{folder}/"), kind=picture_files.NOT_READABLE, reason=reason)
            )
            return []

    def _add(self, name: str) -> None:
        self.names.append(name)
        if len(self.names) > picture_files.MAX_FILES:
            raise DatasetError(
                f"{self.root} holds more than {picture_files.MAX_FILES:,} files: give a smaller"
                " folder."
            )

    def open(self, name: str) -> BinaryIO:
        """See Source.

        Neither a link nor a pipe that has taken the file's place meanwhile is opened.
        """
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
                if (
                    self.size(name) > picture_files.MAX_FILE_BYTES
                ):  # left out, and may be a film of many hours
                    continue
                with self.open(name) as file:
                    digest.update(
                        hashlib.file_digest(cast(io.BufferedReader, file), "sha256").digest()
                    )
            except OSError as error:
                digest.update(str(error.errno).encode())  # it is skipped by name
        return digest.hexdigest()


def _kind_of_entry(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "no file"


ADVICE = "give a folder or a .zip of pictures"
ARCHIVE = "archive"  # the kind of a file that may hold pictures itself
AT_ONCE = 512  # files between two looks at whether somebody has cancelled


@contextlib.contextmanager
def opened(path: Path, code_page: str = zip_source.AUTO) -> Iterator[Source]:
    """The files of a folder or a zip file.

    `code_page`: of the names in a zip, see `member_names` (zip_source.py).

    Raises:
        DatasetError: it is neither or cannot be read, or a zip that is damaged or may not be read
            (see `ZipSource`).
    """
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no file can have that name"
        raise DatasetError(f"{quoted(str(path))} cannot be read ({reason}): {ADVICE}.") from None
    if stat.S_ISDIR(mode):
        yield FolderSource(path)
        return
    if not stat.S_ISREG(mode):  # opening a pipe would wait for its other end
        raise DatasetError(f"{path} is neither a folder nor a plain file: {ADVICE}.")
    with contextlib.ExitStack() as stack:
        try:
            bundle = stack.enter_context(zip_directory.opened(path, picture_files.MAX_MEMBERS))
        except CrowdedZipError:
            limit = picture_files.MAX_MEMBERS
            raise picture_files.refused(
                path, f"lists more than {limit:,} files and folders"
            ) from None
        except UNREADABLE as error:
            raise _no_zip(path, error) from None
        yield ZipSource(path, bundle, code_page)


def _no_zip(path: Path, error: Exception) -> DatasetError:
    """Why a file cannot be opened as a zip."""
    if isinstance(error, OSError) and error.strerror:
        return DatasetError(f"{path.name} cannot be read ({error.strerror}): {ADVICE}.")
    if isinstance(error, UnicodeDecodeError):
        return DatasetError(
            f"{path.name} says that its names are UTF-8, but they are not: pack it with another"
            " program."
        )
    kind = ""
    with contextlib.suppress(OSError), path.open("rb") as file:
        kind = picture_files.of(file)
    if kind == picture_files.ZIP:
        return DatasetError(
            f"{path.name} is a zip file, but damaged or cut short: fetch it again, or pack it"
            " again."
        )
    if kind:
        advice = "unpack it and give its folder" if picture_files.holds_files(kind) else ADVICE
        return DatasetError(f"{path.name} is {kind}, no zip file: {advice}.")
    return DatasetError(
        f"{path.name} is no zip file, or damaged: give a folder, or a .zip that opens on this"
        " machine."
    )


@dataclass(frozen=True)
class Contents:
    """The files of a source by their first bytes.

    `pictures`: also files that cannot be read, whose kind is not known; sorted.
    """

    pictures: list[str]
    others: list[Skip]


def contents(files: Source, progress: Progress) -> Contents:
    """Reads the first bytes of each file."""
    pictures, others = [], []
    for number, name in enumerate(files.names):
        if number % AT_ONCE == 0:
            progress(
                number, len(files.names), f"Looking at {number:,} of {len(files.names):,} files"
            )
        kind = _kind(files, name)
        if kind == picture_files.PICTURE:
            pictures.append(name)
        elif picture_files.holds_files(kind):
            others.append(Skip(name=readable(name), kind=ARCHIVE, reason=f"it is {kind} itself"))
        else:
            reason = f"it is {kind}, no picture" if kind else "it is no JPEG, PNG or WebP picture"
            others.append(Skip(name=readable(name), kind="no picture", reason=reason))
    return Contents(pictures, others)


def _kind(files: Source, name: str) -> str:
    try:
        with files.open(name) as file:
            return picture_files.of(file)
    except UNREADABLE:  # it is skipped by name when it is to be converted, with the reason
        return picture_files.PICTURE
