"""results.duckdb made anew from the journals: built aside, put in place at the end, so it is old or new, never half.

python -m gan_runtime rebuild
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from gan_runtime.base import disk, output_files
from gan_runtime.base.errors import (
    StoreDamagedError,
    StoreError,
    StoreKind,
    StoreLockedError,
    StoreNewerError,
)
from gan_runtime.records.home import Home
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store
from gan_runtime.supervision import owner, quarantine

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
    output_files.check([home.database], overwrite=True)
    lock = owner.acquire(home)
    new = home.database.with_name(f"{home.database.name}.new-{os.getpid()}")
    try:
        wrong = _what_is_wrong(home.database)
        with disk.told_when_full(home.path):
            rows = _build(home, new)
        damaged = None if wrong is None else quarantine.set_aside(home.database, wrong)
        quarantine.wal(home.database).unlink(
            missing_ok=True
        )  # DuckDB would replay the old file's log into the new one
        new.replace(home.database)
        return Rebuilt(rows, damaged)
    finally:
        new.unlink(missing_ok=True)
        quarantine.wal(new).unlink(missing_ok=True)
        lock.release()


def _what_is_wrong(database: Path) -> StoreKind | None:
    """None as well when there is no file. Raises StoreLockedError when another program has it open."""
    if not database.exists():
        return None
    try:
        Store(database).close()
    except StoreLockedError:
        raise
    except StoreNewerError:
        return StoreKind.NEWER
    except StoreError as error:
        return error.kind if isinstance(error, StoreDamagedError) else StoreKind.DAMAGED
    return None


def _build(home: Home, path: Path) -> dict[str, int]:
    store = Store(path)
    try:
        Ingestor(home, store).catch_up()
        return {view: store.rows(f"SELECT count(*) FROM {view}")[0][0] for view in VIEWS}
    finally:
        store.close()
