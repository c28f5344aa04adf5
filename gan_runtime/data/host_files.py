"""Folders and files of this host that the browser may use: those below GAN_DATA_DIR, and no others.

Whoever opens a page is not always who owns the host; the command line takes any path.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from gan_runtime.data.mnist import DATA_VARIABLE, data_folder
from gan_runtime.errors import DatasetError, quoted

DEPTH = 2  # folders below GAN_DATA_DIR that are offered
MOST = 200


def offered(suffixes: tuple[str, ...] = (".zip",)) -> list[str]:
    """Folders, and files that end so, by their path in GAN_DATA_DIR, sorted; empty when that is no folder."""
    try:
        root = _root()
    except DatasetError:
        return []
    return sorted(
        path.relative_to(root).as_posix()
        for path, _ in zip(_below(root, DEPTH, suffixes), range(MOST), strict=False)
    )


def chosen(given: str) -> Path:
    """The folder or file with a path in GAN_DATA_DIR.

    Raises:
        DatasetError: it is not set, nothing is there, or the path leads out of it, also by a link.
    """
    root = _root()
    try:
        path = (root / given).resolve(strict=True)
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


def _below(folder: Path, depth: int, suffixes: tuple[str, ...]) -> Iterator[Path]:
    with contextlib.suppress(OSError):  # of another user
        for path in sorted(folder.iterdir()):
            if path.name.startswith(".") or path.is_symlink():
                continue
            if path.is_dir():
                yield path
                if depth > 1:
                    yield from _below(path, depth - 1, suffixes)
            elif path.name.partition("?")[0].lower().endswith(suffixes):  # as a download may be called
                yield path
