"""Files that a person asks for: never half written, never in the place of another file
unasked, never in that of a device.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from gan_runtime.base import disk
from gan_runtime.base.errors import TargetError

# of a text that a spreadsheet takes for a formula; the hyphen last, so that a regular expression
# takes it
FORMULA_BEGINNINGS = "=+@\t\r\n＝＋－＠-"
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def check(paths: Iterable[Path], overwrite: bool) -> None:
    """Whether all of these may be written.

    Raises:
        TargetError: one is no plain file (a link is none, wherever it leads), or stands there and
            `overwrite` is not given.
        OSError: its folder cannot be looked into.
    """
    for path in paths:
        kind = _kind(path)
        if kind not in (None, stat.S_IFREG):
            raise TargetError(
                f"{path} is {_KINDS.get(kind or 0, 'no file')}, not a plain file: choose another"
                " place."
            )
        if kind is not None and not overwrite:
            raise TargetError(f"{path} exists already: choose another place, or give --overwrite.")


@contextlib.contextmanager
def whole_file(path: Path, overwrite: bool) -> Iterator[Path]:
    """A path beside `path` to write to; it takes the place of `path` at the end, and is removed
    when the writing fails.

    Raises as `check`.
    """
    check([path], overwrite)
    aside = path.with_name(f".{os.getpid()}.{path.name}")  # the same ending: writers may look at it
    with disk.whole_file(path, aside=aside):
        yield aside
        check([path], overwrite)  # writing may have taken minutes


def _kind(path: Path) -> int | None:
    """None when nothing is there."""
    try:
        return stat.S_IFMT(path.lstat().st_mode)
    except FileNotFoundError:
        return None
