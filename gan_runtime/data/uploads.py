"""Files that users upload in the browser, until a job has prepared them: `<home>/jobs/.uploads/`.

<file id>/content      the uploaded file
<file id>/<name>       a hard link to it, by the name that jobs and messages use
images-<hash>/       several images as one folder

Of the files on this host, a browser can use only those below GAN_DATA_DIR, since its user need not
own the host. The command line takes any path.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gan_runtime.base.errors import DatasetError, HomeError, quoted
from gan_runtime.catalog.preparation import HDF5_SUFFIXES
from gan_runtime.data import image_files
from gan_runtime.data.idx_files import DATA_VARIABLE, data_folder
from gan_runtime.data.summary import readable
from gan_runtime.records.home import Home

DEPTH = 2  # levels of folders below GAN_DATA_DIR that are listed
MOST = 200
FOLDER = ".uploads"
CONTENT = "content"
OLD_SECONDS = 48 * 3_600.0  # after these, an unused upload is removed
_FILE_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
_UNSAFE = re.compile(r"[^\w.() -]+")
MOST_BYTES = 200  # of a file's name; systems allow 255, and a number precedes it


@dataclass(frozen=True)
class OfferedFiles:
    """Files of GAN_DATA_DIR in a form. `names`: paths of folders and files, sorted. `problems`:
    what cannot be read, and why.
    """

    names: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def offered_files(suffixes: tuple[str, ...] = (".zip",)) -> OfferedFiles:
    """Folders, and files with these suffixes; empty when GAN_DATA_DIR is not set."""
    if not os.environ.get(DATA_VARIABLE):
        return OfferedFiles()
    try:
        root = _root()
    except DatasetError as error:
        return OfferedFiles(problems=[str(error)])
    problems: list[str] = []
    paths = itertools.islice(_below(root, DEPTH, suffixes, problems), MOST)
    return OfferedFiles(sorted(path.relative_to(root).as_posix() for path in paths), problems)


def path_of(name: str) -> Path:
    """The folder or file with a path in GAN_DATA_DIR.

    Raises:
        DatasetError: GAN_DATA_DIR is not set, or the path does not exist or is outside, also by a
            link.
    """
    root = _root()
    try:
        path = (root / name).resolve(strict=True)
    except PermissionError as error:
        raise DatasetError(_unreadable(root / name, error)) from None
    except (OSError, ValueError):
        raise DatasetError(f"{root} has no {quoted(name)}: {_advice(root)}") from None
    if not path.is_relative_to(root):
        raise DatasetError(
            f"{quoted(name)} is outside of {root} ({DATA_VARIABLE}): {_advice(root)}"
        )
    return path


def _advice(root: Path) -> str:
    return f"put the files below {root}, or upload them in the browser."


def _root() -> Path:
    setting = os.environ.get(DATA_VARIABLE)
    if not setting:
        raise DatasetError(
            f"{DATA_VARIABLE} is not set: set it to a folder of data before starting the dashboard,"
            " or upload the files in the browser."
        )
    return data_folder(setting).resolve()


def _below(
    folder: Path, depth: int, suffixes: tuple[str, ...], problems: list[str]
) -> Iterator[Path]:
    """Adds sentences about unreadable files to `problems`."""
    try:
        with os.scandir(folder) as entries:
            kinds = sorted(
                (entry.name, entry.is_dir(follow_symlinks=False), entry.is_symlink())
                for entry in entries
            )
    except OSError as error:
        problems.append(_unreadable(folder, error))
        return
    for name, is_folder, is_link in kinds:
        if is_link or image_files.skipped_folder(name):
            continue
        path = folder / name
        if readable(name) != name:  # no page can show it
            problems.append(
                f"{readable(str(path))} cannot be listed, since its name is not UTF-8: rename it."
            )
        elif is_folder:
            yield path
            if depth > 1:
                yield from _below(path, depth - 1, suffixes, problems)
        elif name.partition("?")[0].lower().endswith(suffixes):  # as a download may be called
            yield path


def _unreadable(path: Path, error: OSError) -> str:
    return (
        f"{readable(str(path))} cannot be read ({error.strerror}): give the user of the"
        " dashboard read permission."
    )


@dataclass(frozen=True)
class Upload:
    """A file of the browser. `name`: from the user's machine, so it can be any text."""

    file_id: str
    name: str

    @property
    def stands_alone(self) -> bool:
        """Whether the file is a source without a folder, by its name: a zip, or a file of
        arrays.
        """
        return self.name.lower().endswith((".zip", *HDF5_SUFFIXES))

    @property
    def plain_name(self) -> str:
        """The last part of the name, safe for a file of the home; a long one keeps its end."""
        last = self.name.replace("\\", "/").rpartition("/")[2]
        end = _UNSAFE.sub("_", last).strip(". ").encode("utf-8", "replace")[-MOST_BYTES:]
        return end.decode("utf-8", "ignore").strip(". ") or "file"


def place(home: Home, file_id: str) -> Path:
    """The path of an upload's content, which need not exist. Raises ValueError for a wrong id."""
    if _FILE_ID.fullmatch(file_id) is None:
        raise ValueError(f"{file_id!r} is not the id of a file")
    return home.jobs / FOLDER / file_id / CONTENT


def store(home: Home, file_id: str, content: bytes) -> None:
    """Writes an upload that is in memory. Raises HomeError when the disk is full."""
    path = place(home, file_id)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        remove(home, file_id)
        raise HomeError.not_written(path, error) from None


def remove(home: Home, file_id: str) -> None:
    """Removes an upload, if it exists."""
    shutil.rmtree(place(home, file_id).parent, ignore_errors=True)


def remove_old(home: Home, clock: Callable[[], float] = time.time) -> None:
    """Removes uploads that are two days old. `clock`: seconds, as in the times of files."""
    with contextlib.suppress(OSError):
        for path in (home.jobs / FOLDER).iterdir():
            if clock() - path.stat().st_mtime > OLD_SECONDS:
                shutil.rmtree(path, ignore_errors=True)


def as_source(home: Home, files: Sequence[Upload]) -> Path:
    """The source of a data set: the one zip or HDF5 file, or a folder with all files.

    Raises:
        DatasetError: a zip and other files, or a file that was removed.
        HomeError: the folder cannot be created.
    """
    zips = [file for file in files if _is_zip(home, file)]
    if zips and len(files) > 1:
        raise DatasetError(
            "a .zip and other files cannot be one data set: upload either one .zip or several"
            " images."
        )
    try:
        if len(files) == 1 and (zips or files[0].stands_alone):
            return _link(home, files[0], place(home, files[0].file_id).parent / files[0].plain_name)
        folder = home.jobs / FOLDER / f"pictures-{_hash(files)}"
        folder.mkdir(parents=True, exist_ok=True)
        for number, file in enumerate(files, 1):
            _link(home, file, folder / f"{number:05d}-{file.plain_name}")
        return folder
    except OSError as error:
        raise HomeError.not_written(home.jobs / FOLDER, error) from None


def remove_source(home: Home, source: Path) -> None:
    """Removes an upload after its data set is prepared.

    Other sources belong to the user and stay.
    """
    top = home.jobs / FOLDER
    if source.is_relative_to(top) and source != top:
        shutil.rmtree(top / source.relative_to(top).parts[0], ignore_errors=True)


def _is_zip(home: Home, file: Upload) -> bool:
    """By its name or its first bytes, since a browser may append ?download=1 to the name."""
    if file.name.lower().endswith(".zip"):
        return True
    try:
        with place(home, file.file_id).open("rb") as content:
            return image_files.kind_of(content) == image_files.ZIP
    except OSError:  # `_link` reports a missing file
        return False


def _link(home: Home, file: Upload, path: Path) -> Path:
    content = place(home, file.file_id)
    if not content.exists():
        raise DatasetError(f"the upload {file.plain_name} has expired: upload it again.")
    with contextlib.suppress(FileExistsError):
        os.link(content, path)
    return path


def _hash(files: Sequence[Upload]) -> str:
    return hashlib.sha256("\n".join(file.file_id for file in files).encode()).hexdigest()[:16]
