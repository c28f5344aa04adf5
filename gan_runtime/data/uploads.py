"""What people have dropped into the browser, until a job has made something of it:
`<home>/jobs/.uploads/`.

<file id>/content      a file as it came
<file id>/<name>       the same file (a second name of it, no copy), as jobs and messages call it
pictures-<hash>/       several pictures as one folder

Beside them, of the files of this host, a browser may use those below GAN_DATA_DIR and no others:
whoever opens a page is not always who owns the host. The command line takes any path.
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
from gan_runtime.catalog.domain import HDF5_SUFFIXES
from gan_runtime.data import picture_files
from gan_runtime.data.mnist import DATA_VARIABLE, data_folder
from gan_runtime.data.picture_files import readable
from gan_runtime.records.home import Home

DEPTH = 2  # folders below GAN_DATA_DIR that are offered
MOST = 200


@dataclass(frozen=True)
class Offered:
    """`names`: of folders and files, by their path in GAN_DATA_DIR, sorted.

    `problems`: what cannot be read, and why.
    """

    names: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def offered(suffixes: tuple[str, ...] = (".zip",)) -> Offered:
    """Folders, and files that end so; nothing when GAN_DATA_DIR is not set."""
    if not os.environ.get(DATA_VARIABLE):
        return Offered()
    try:
        root = _root()
    except DatasetError as error:
        return Offered(problems=[str(error)])
    problems: list[str] = []
    paths = itertools.islice(_below(root, DEPTH, suffixes, problems), MOST)
    return Offered(sorted(path.relative_to(root).as_posix() for path in paths), problems)


def chosen(given: str) -> Path:
    """The folder or file with a path in GAN_DATA_DIR.

    Raises:
        DatasetError: it is not set, nothing is there, or the path leads out of it, also by a link.
    """
    root = _root()
    try:
        path = (root / given).resolve(strict=True)
    except PermissionError as error:
        raise DatasetError(_not_read(root / given, error)) from None
    except (OSError, ValueError):
        raise DatasetError(f"there is no {quoted(given)} in {root}: {_advice(root)}") from None
    if not path.is_relative_to(root):
        raise DatasetError(
            f"{quoted(given)} leads out of {root} ({DATA_VARIABLE}): {_advice(root)}"
        )
    return path


def _advice(root: Path) -> str:
    return f"put the files below {root}, or drop them into the browser."


def _root() -> Path:
    given = os.environ.get(DATA_VARIABLE)
    if not given:
        raise DatasetError(
            f"{DATA_VARIABLE} is not set: set it to a folder of data before starting the dashboard,"
            " or drop the files into the browser."
        )
    return data_folder(given).resolve()


def _below(
    folder: Path, depth: int, suffixes: tuple[str, ...], problems: list[str]
) -> Iterator[Path]:
    """`problems`: sentences about what cannot be read are added to it."""
    try:
        with os.scandir(folder) as entries:
            kinds = sorted(
                (entry.name, entry.is_dir(follow_symlinks=False), entry.is_symlink())
                for entry in entries
            )
    except OSError as error:
        problems.append(_not_read(folder, error))
        return
    for name, is_folder, is_link in kinds:
        if name.startswith(".") or is_link:
            continue
        path = folder / name
        if readable(name) != name:  # no page can show it
            problems.append(
                f"{readable(str(path))} cannot be offered: its name is not text in UTF-8."
                " Rename it."
            )
        elif is_folder:
            yield path
            if depth > 1:
                yield from _below(path, depth - 1, suffixes, problems)
        elif name.partition("?")[0].lower().endswith(suffixes):  # as a download may be called
            yield path


def _not_read(path: Path, error: OSError) -> str:
    return (
        f"{readable(str(path))} cannot be read ({error.strerror}): give the user of the dashboard"
        " the right to read it."
    )


FOLDER = ".uploads"
CONTENT = "content"
OLD_SECONDS = 48 * 3_600.0  # of a browser that went away without a word
_FILE_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
_ODD = re.compile(r"[^\w.() -]+")
MOST_BYTES = 200  # of a file's name; systems take 255, and a number comes before it


@dataclass(frozen=True)
class Dropped:
    """A file of the browser. `name`: as the person's machine calls it, so it may be anything."""

    file_id: str
    name: str

    @property
    def stands_alone(self) -> bool:
        """Whether by its name it can be a source without a folder around it: a zip, or a file
        of arrays.
        """
        return self.name.lower().endswith((".zip", *HDF5_SUFFIXES))

    @property
    def plain_name(self) -> str:
        """Its last part, fit for a file of ours. Its end is kept, where the ending is."""
        last = self.name.replace("\\", "/").rpartition("/")[2]
        end = _ODD.sub("_", last).strip(". ").encode("utf-8", "replace")[-MOST_BYTES:]
        return end.decode("utf-8", "ignore").strip(". ") or "file"


def place(home: Home, file_id: str) -> Path:
    """Where the content of a file lies, or would. Raises ValueError for what is no id."""
    if _FILE_ID.fullmatch(file_id) is None:
        raise ValueError(f"{file_id!r} is no id of a file")
    return home.jobs / FOLDER / file_id / CONTENT


def keep(home: Home, file_id: str, content: bytes) -> None:
    """Writes a file that is at hand as a whole. Raises HomeError when the disk takes no more."""
    path = place(home, file_id)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        forget(home, file_id)
        raise HomeError.not_written(path, error) from None


def forget(home: Home, file_id: str) -> None:
    """Removes a file, if it is there."""
    shutil.rmtree(place(home, file_id).parent, ignore_errors=True)


def forget_old(home: Home, clock: Callable[[], float] = time.time) -> None:
    """Removes what nobody has fetched for two days. `clock`: seconds as files are dated by."""
    with contextlib.suppress(OSError):
        for path in (home.jobs / FOLDER).iterdir():
            if clock() - path.stat().st_mtime > OLD_SECONDS:
                shutil.rmtree(path, ignore_errors=True)


def as_source(home: Home, files: Sequence[Dropped]) -> Path:
    """The one zip or HDF5 file, or a folder with all files: what a data set can be prepared from.

    Raises:
        DatasetError: a zip and other files, several zips, or a file that is gone.
        HomeError: the folder cannot be made.
    """
    zips = [file for file in files if _is_zip(home, file)]
    if zips and len(files) > 1:
        raise DatasetError(
            "drop either one .zip or several pictures: a .zip and other files cannot be one data"
            " set."
        )
    try:
        if len(files) == 1 and (zips or files[0].stands_alone):
            return _named(
                home, files[0], place(home, files[0].file_id).parent / files[0].plain_name
            )
        folder = home.jobs / FOLDER / f"pictures-{_hash(files)}"
        folder.mkdir(parents=True, exist_ok=True)
        for number, file in enumerate(files, 1):
            _named(home, file, folder / f"{number:05d}-{file.plain_name}")
        return folder
    except OSError as error:
        raise HomeError.not_written(home.jobs / FOLDER, error) from None


def done_with(home: Home, source: Path) -> None:
    """Removes what was dropped once a data set is made of it.

    Other sources belong to people and stay.
    """
    top = home.jobs / FOLDER
    if source.is_relative_to(top) and source != top:
        shutil.rmtree(top / source.relative_to(top).parts[0], ignore_errors=True)


def _is_zip(home: Home, file: Dropped) -> bool:
    """By its name, or by its first bytes: a browser may add ?download=1 to the name."""
    if file.name.lower().endswith(".zip"):
        return True
    try:
        with place(home, file.file_id).open("rb") as content:
            return picture_files.of(content) == picture_files.ZIP
    except OSError:  # `_named` says that it is gone
        return False


def _named(home: Home, file: Dropped, path: Path) -> Path:
    content = place(home, file.file_id)
    if not content.exists():
        raise DatasetError(f"{file.plain_name} is no longer here: drop it again.")
    with contextlib.suppress(FileExistsError):
        os.link(content, path)
    return path


def _hash(files: Sequence[Dropped]) -> str:
    return hashlib.sha256("\n".join(file.file_id for file in files).encode()).hexdigest()[:16]
