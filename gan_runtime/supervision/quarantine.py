"""A results.duckdb that cannot be used is kept beside the new one, under a name that says what it is and when it was found.

results.duckdb.damaged-20260101-120000, with its .wal. Of what this program wrote the newest few are kept; what another program or a newer
version wrote is left to the person.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path

from gan_runtime.base import output_files
from gan_runtime.base.errors import HomeError, StoreKind

KEPT = 3
_DERIVED = (StoreKind.DAMAGED, StoreKind.OLDER)
log = logging.getLogger("gan_runtime")


def wal(database: Path) -> Path:
    """DuckDB's log of what is not yet in the file."""
    return database.with_name(f"{database.name}.wal")


def set_aside(database: Path, kind: StoreKind) -> Path:
    """Renames the file, or a folder in its place; returns where it lies now.

    Raises:
        TargetError: a link, a pipe or a device lies there; nothing is changed.
        HomeError: the folder does not allow it; nothing is changed.
    """
    if not database.is_dir() or database.is_symlink():
        output_files.check([database], overwrite=True)
    target = _free(database, kind)
    try:
        if wal(database).exists():  # first, as DuckDB would replay it into the file that comes next
            wal(database).rename(wal(target))
        database.rename(target)
    except OSError as error:
        raise HomeError(
            f"{database} cannot be used, nor be set aside as {target.name} ({error.strerror}): rename or delete it yourself, "
            "or change the rights of its folder; the journals of all runs are whole."
        ) from None
    _forget_oldest(database)
    return target


def _free(database: Path, kind: StoreKind) -> Path:
    """A name that nothing has, nor had within the same second: names then sort by age."""
    name = f"{database.name}.{kind}-{time.strftime('%Y%m%d-%H%M%S')}"
    taken = [path.name.removesuffix(".wal") for path in database.parent.glob(f"{name}*")]
    return database.with_name(f"{name}-{max(map(_place, taken)) + 1}" if taken else name)


def _place(name: str) -> int:
    """Of the second, third, … file of one second."""
    parts = name.split("-")  # kind, day, time and, from the second on, place
    return int(parts[3]) if len(parts) > 3 and parts[3].isdigit() else 1


def _forget_oldest(database: Path) -> None:
    found = [path for kind in _DERIVED for path in database.parent.glob(f"{database.name}.{kind}-*")]
    files = [path for path in found if path.is_file() and path.suffix != ".wal"]
    kept = sorted(files, key=lambda path: (path.name.split("-")[1:3], _place(path.name)))
    for path in kept[:-KEPT]:
        try:
            path.unlink()
            wal(path).unlink(missing_ok=True)
            log.warning("%s is removed: only the newest %d of its kind are kept", path, KEPT)
        except OSError as error:
            log.warning("%s is one too many and cannot be removed (%s)", path, error.strerror)
