"""results.duckdb made anew from the journals: built aside, put in place at the end, so it is old or new, never half.

python -m gan_runtime rebuild
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from gan_runtime import disk, targets
from gan_runtime.errors import StoreError, StoreLockedError
from gan_runtime.home import Home
from gan_runtime.runtime import owner
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store

VIEWS = (
    "runs",
    "scalars",
    "epochs",
    "histograms",
    "samples",
    "profiles",
    "memory",
    "phases",
    "kernels",
    "jobs",
    "events",
)


@dataclass(frozen=True)
class Rebuilt:
    """Rows per view of the new file, and where an unusable old file lies now (None when there was none)."""

    rows: dict[str, int]
    damaged: Path | None


def rebuild(home: Home) -> Rebuilt:
    """Makes the file anew while owning the home. An old file that cannot be used is kept under another name.

    Raises:
        HomeInUseError, StoreLockedError: another process owns the home or holds the file; nothing is changed.
        HomeError: the home cannot be written.
        TargetError: what lies in the file's place is no plain file.
    """
    home.prepare()
    targets.check([home.database], overwrite=True)
    lock = owner.acquire(home)
    aside = home.database.with_name(f"{home.database.name}.new-{os.getpid()}")
    try:
        usable = _is_usable(home.database)
        with disk.told_when_full(home.path):
            rows = _build(home, aside)
        damaged = None if usable else _set_aside(home.database)
        _wal(home.database).unlink(missing_ok=True)  # DuckDB would replay the old file's log into the new one
        aside.replace(home.database)
        return Rebuilt(rows, damaged)
    finally:
        aside.unlink(missing_ok=True)
        _wal(aside).unlink(missing_ok=True)
        lock.release()


def _is_usable(database: Path) -> bool:
    """True as well when there is no file. Raises StoreLockedError when another program has it open."""
    if not database.exists():
        return True
    try:
        Store(database).close()
        return True
    except StoreLockedError:
        raise
    except StoreError:
        return False


def _build(home: Home, path: Path) -> dict[str, int]:
    store = Store(path)
    try:
        Ingestor(home, store).catch_up()
        return {view: store.rows(f"SELECT count(*) FROM {view}")[0][0] for view in VIEWS}
    finally:
        store.close()


def _set_aside(database: Path) -> Path:
    damaged = database.with_name(f"{database.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}")
    if _wal(database).exists():
        _wal(database).rename(_wal(damaged))
    return database.rename(damaged)


def _wal(database: Path) -> Path:
    """DuckDB's log of what is not yet in the file."""
    return database.with_name(f"{database.name}.wal")
