"""Opens a folder or a zip file of pictures, whichever a path is, and says which of its files are pictures."""

from __future__ import annotations

import contextlib
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gan_runtime.base import zip_directory
from gan_runtime.base.errors import DatasetError, quoted
from gan_runtime.base.zip_directory import CrowdedZipError
from gan_runtime.data import file_kinds, picture_files, zip_names
from gan_runtime.data.contract import Progress
from gan_runtime.data.folder_source import FolderSource
from gan_runtime.data.picture_files import UNREADABLE, Source, readable
from gan_runtime.data.summary import Skip
from gan_runtime.data.zip_source import ZipSource

ADVICE = "give a folder or a .zip of pictures"
ARCHIVE = "archive"  # the kind of a file that may hold pictures itself
AT_ONCE = 512  # files between two looks at whether somebody has cancelled


@contextlib.contextmanager
def opened(path: Path, code_page: str = zip_names.AUTO) -> Iterator[Source]:
    """The files of a folder or a zip file. `code_page`: of the names in a zip, see `zip_names`.

    Raises:
        DatasetError: it is neither or cannot be read, or a zip that is damaged or may not be read (see `ZipSource`).
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
            raise picture_files.refused(path, f"lists more than {limit:,} files and folders") from None
        except UNREADABLE as error:
            raise _no_zip(path, error) from None
        yield ZipSource(path, bundle, code_page)


def _no_zip(path: Path, error: Exception) -> DatasetError:
    """Why a file cannot be opened as a zip."""
    if isinstance(error, OSError) and error.strerror:
        return DatasetError(f"{path.name} cannot be read ({error.strerror}): {ADVICE}.")
    if isinstance(error, UnicodeDecodeError):
        return DatasetError(
            f"{path.name} says that its names are UTF-8, but they are not: pack it with another program."
        )
    kind = ""
    with contextlib.suppress(OSError), path.open("rb") as file:
        kind = file_kinds.of(file)
    if kind == file_kinds.ZIP:
        return DatasetError(
            f"{path.name} is a zip file, but damaged or cut short: fetch it again, or pack it again."
        )
    if kind:
        advice = "unpack it and give its folder" if file_kinds.holds_files(kind) else ADVICE
        return DatasetError(f"{path.name} is {kind}, no zip file: {advice}.")
    return DatasetError(
        f"{path.name} is no zip file, or damaged: give a folder, or a .zip that opens on this machine."
    )


@dataclass(frozen=True)
class Contents:
    """The files of a source by their first bytes. `pictures`: also files that cannot be read, whose kind is not known; sorted."""

    pictures: list[str]
    others: list[Skip]


def contents(files: Source, progress: Progress) -> Contents:
    """Reads the first bytes of each file."""
    pictures, others = [], []
    for number, name in enumerate(files.names):
        if number % AT_ONCE == 0:
            progress(number, len(files.names), f"Looking at {number:,} of {len(files.names):,} files")
        kind = _kind(files, name)
        if kind == file_kinds.PICTURE:
            pictures.append(name)
        elif file_kinds.holds_files(kind):
            others.append(Skip(name=readable(name), kind=ARCHIVE, reason=f"it is {kind} itself"))
        else:
            reason = f"it is {kind}, no picture" if kind else "it is no JPEG, PNG or WebP picture"
            others.append(Skip(name=readable(name), kind="no picture", reason=reason))
    return Contents(pictures, others)


def _kind(files: Source, name: str) -> str:
    try:
        with files.open(name) as file:
            return file_kinds.of(file)
    except UNREADABLE:  # it is skipped by name when it is to be converted, with the reason
        return file_kinds.PICTURE
