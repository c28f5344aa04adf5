"""Folders and files of this host that the browser may use: those below GAN_DATA_DIR, and no others.

Whoever opens a page is not always who owns the host; the command line takes any path.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gan_runtime.base.errors import DatasetError, quoted
from gan_runtime.data.mnist import DATA_VARIABLE, data_folder
from gan_runtime.data.picture_files import readable

DEPTH = 2  # folders below GAN_DATA_DIR that are offered
MOST = 200


@dataclass(frozen=True)
class Offered:
    """`names`: of folders and files, by their path in GAN_DATA_DIR, sorted. `problems`: what cannot be read, and why."""

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
        raise DatasetError(f"{quoted(given)} leads out of {root} ({DATA_VARIABLE}): {_advice(root)}")
    return path


def _advice(root: Path) -> str:
    return f"put the files below {root}, or drop them into the browser."


def _root() -> Path:
    given = os.environ.get(DATA_VARIABLE)
    if not given:
        raise DatasetError(
            f"{DATA_VARIABLE} is not set: set it to a folder of data before starting the dashboard, "
            "or drop the files into the browser."
        )
    return data_folder(given).resolve()


def _below(folder: Path, depth: int, suffixes: tuple[str, ...], problems: list[str]) -> Iterator[Path]:
    """`problems`: sentences about what cannot be read are added to it."""
    try:
        with os.scandir(folder) as entries:
            kinds = sorted(
                (entry.name, entry.is_dir(follow_symlinks=False), entry.is_symlink()) for entry in entries
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
                f"{readable(str(path))} cannot be offered: its name is not text in UTF-8. Rename it."
            )
        elif is_folder:
            yield path
            if depth > 1:
                yield from _below(path, depth - 1, suffixes, problems)
        elif name.partition("?")[0].lower().endswith(suffixes):  # as a download may be called
            yield path


def _not_read(path: Path, error: OSError) -> str:
    return f"{readable(str(path))} cannot be read ({error.strerror}): give the user of the dashboard the right to read it."
