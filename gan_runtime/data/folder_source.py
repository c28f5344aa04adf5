"""A folder as a source of pictures: all plain files below it."""

from __future__ import annotations

import hashlib
import io
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

from gan_runtime.base.errors import DatasetError, quoted
from gan_runtime.data import picture_files
from gan_runtime.data.contract import Progress
from gan_runtime.data.picture_files import is_hidden, readable
from gan_runtime.data.summary import Skip


@dataclass
class FolderSource:
    """See `picture_files.Source`. Links are not followed: they may lead out of the folder, or round in a circle.

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
        """What is in a folder: names, and whether each is a folder, a file, a link or no file. Skips a folder that cannot be read."""
        try:
            with os.scandir(self.root / folder) as entries:
                return sorted((entry.name, _kind(entry)) for entry in entries)
        except OSError as error:
            if not folder:
                raise DatasetError(
                    f"{quoted(str(self.root))} cannot be read ({error.strerror}): give a folder that you may read."
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
                f"{self.root} holds more than {picture_files.MAX_FILES:,} files: give a smaller folder."
            )

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
                if (
                    self.size(name) > picture_files.MAX_FILE_BYTES
                ):  # left out, and may be a film of many hours
                    continue
                with self.open(name) as file:
                    digest.update(hashlib.file_digest(cast(io.BufferedReader, file), "sha256").digest())
            except OSError as error:
                digest.update(str(error.errno).encode())  # it is skipped by name
        return digest.hexdigest()


def _kind(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "no file"
