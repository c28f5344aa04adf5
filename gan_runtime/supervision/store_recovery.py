"""An unusable results.duckdb is quarantined, and its owner reads the journals into a new one.

Damage is detected when the home is opened, or later by a statement, which the new file then
answers. Pages and log report it as a `RecoveredStore`. The database contains only data from the
journals, so `rebuild` also migrates between schema versions. The old file and its .wal get a name
such as results.duckdb.damaged-20260101-120000. The newest MAX_RETAINED files of this and earlier
versions are retained; files of a newer version or another program are never deleted.
"""

from __future__ import annotations

import logging
import os
import shlex
import time
from dataclasses import dataclass, replace
from pathlib import Path

from gan_runtime.base import disk
from gan_runtime.base.errors import (
    HomeError,
    StoreDamagedError,
    StoreError,
    StoreKind,
    StoreLockedError,
    StoreNewerError,
)
from gan_runtime.records.home import Home
from gan_runtime.store import database_file
from gan_runtime.store.folder_watcher import Clock
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store
from gan_runtime.supervision import owner

log = logging.getLogger("gan_runtime")


# ---- the old file --------------------------------------------------------------------------------


MAX_RETAINED = 3
_DERIVED = (StoreKind.DAMAGED, StoreKind.OLDER)


def wal(database: Path) -> Path:
    """DuckDB's write-ahead log of a database."""
    return database.with_name(f"{database.name}.wal")


def quarantine(database: Path, kind: StoreKind) -> Path:
    """Quarantines the database by a rename; returns its new path.

    Raises:
        TargetError: the path is a link, a pipe or a device; nothing is changed.
        HomeError: the folder does not allow it; nothing is changed.
    """
    if not database.is_dir() or database.is_symlink():
        disk.check_targets([database], overwrite=True)
    target = _free_name(database, kind)
    try:
        if wal(database).exists():  # first, since DuckDB would replay the log into the next file
            wal(database).rename(wal(target))
        database.rename(target)
    except OSError as error:
        raise HomeError(
            f"{database} cannot be used, nor renamed to {target.name} ({error.strerror}): rename or"
            " delete it, or change the permissions of its folder; the journals of all runs are"
            " intact."
        ) from None
    _forget_oldest(database)
    return target


def _free_name(database: Path, kind: StoreKind) -> Path:
    """An unused name, numbered within a second, so that names sort by age."""
    name = f"{database.name}.{kind}-{time.strftime('%Y%m%d-%H%M%S')}"
    names = [path.name.removesuffix(".wal") for path in database.parent.glob(f"{name}*")]
    return database.with_name(f"{name}-{max(map(_place_in_second, names)) + 1}" if names else name)


def _place_in_second(name: str) -> int:
    """The number of a file among those of one second, from 1."""
    parts = name.split("-")  # kind, day, time and, from the second file on, its number
    return int(parts[3]) if len(parts) > 3 and parts[3].isdigit() else 1


def _forget_oldest(database: Path) -> None:
    paths = [
        path for kind in _DERIVED for path in database.parent.glob(f"{database.name}.{kind}-*")
    ]
    files = [path for path in paths if path.is_file() and path.suffix != ".wal"]
    files.sort(key=lambda path: (path.name.split("-")[1:3], _place_in_second(path.name)))
    for path in files[:-MAX_RETAINED]:
        try:
            path.unlink()
            wal(path).unlink(missing_ok=True)
            log.warning("%s is removed: only the newest %d are retained", path, MAX_RETAINED)
        except OSError as error:
            log.warning("%s cannot be removed (%s): delete it", path, error.strerror)


# ---- recovery of a home that is open -------------------------------------------------------------


MOST_IN_AN_HOUR = 4  # limit for quarantined files, and for reopenings without a pause
PAUSE_SECONDS = 60.0
HOUR_S = 3_600.0


@dataclass(frozen=True)
class RecoveredStore:
    """A database that was replaced. `problem`: such as "has schema version 3, …"; `old`: the
    quarantined file.

    `runs`: number of runs read again; None while they are being read.
    """

    database: Path
    problem: str
    old: Path
    runs: int | None = None

    @property
    def report(self) -> str:
        """The report for the user, without the command that removes the old file."""
        rebuilt = (
            "The journals of all runs are being read into a new database."
            if self.runs is None
            else (
                f"The new database has {self.runs:,} {'run' if self.runs == 1 else 'runs'}, read"
                " from their journals."
            )
        )
        return (
            f"{self.database} {self.problem}. It was renamed to {self.old.name}. {rebuilt} You can"
            " remove the old file:"
        )

    @property
    def removal(self) -> str:
        """The command that removes the old file."""
        return f"rm{' -r' if self.old.is_dir() else ''} {shlex.quote(str(self.old))}"

    @property
    def sentence(self) -> str:
        """The report with that command."""
        return f"{self.report} {self.removal}"


class StoreRecovery:
    """Repairs the database of one owner: call `open` first, then `repair` before each tick and
    `count_runs` after it. Not thread-safe.
    """

    def __init__(self, home: Home, clock: Clock = time.monotonic) -> None:
        self._home, self._clock = home, clock
        self.recovered: list[RecoveredStore] = []
        # Times of events within the last hour.
        self._reopened_s: list[float] = []
        self._quarantined_s: list[float] = []

    def open(self) -> Store:
        """Opens the database of the home, or a new one if it cannot be used.

        Raises:
            StoreLockedError, StoreNewerError: another process has the file open, or it is newer.
            StoreError, HomeError: the file can neither be used nor quarantined.
        """
        try:
            store = Store(self._home.database)
        except StoreDamagedError as error:
            self._quarantine(error.problem, error.kind)
            store = Store(self._home.database)
        store.barrier.is_repaired = True
        return store

    def repair(self, store: Store) -> bool:
        """Reopens the database after a statement has met damage; returns whether it did.

        Raises StoreError or HomeError if that fails or must wait.
        """
        if store.damage is None:
            return False
        error = store.damage
        self._check_pace(_first(error))
        log.warning("reopening %s: %s", self._home.database, _first(error))
        store.renew(lambda: self._quarantine_damaged(error))
        self._reopened_s.append(self._clock())
        return True

    def _check_pace(self, why: str) -> None:
        now, database = self._clock(), self._home.database
        self._reopened_s = [then for then in self._reopened_s if now - then < HOUR_S]
        self._quarantined_s = [then for then in self._quarantined_s if now - then < HOUR_S]
        if len(self._quarantined_s) >= MOST_IN_AN_HOUR:
            raise StoreError(
                f"{database} was damaged {len(self._quarantined_s)} times within an hour ({why}):"
                " check its disk, then open the dashboard again."
            )
        if len(self._reopened_s) >= MOST_IN_AN_HOUR and now - self._reopened_s[-1] < PAUSE_SECONDS:
            raise StoreError(
                f"{database} was reopened {len(self._reopened_s)} times within an hour ({why}),"
                f" though its file is readable: check the log; the next try is within"
                f" {PAUSE_SECONDS:.0f} s."
            )

    def count_runs(self, store: Store) -> None:
        """Completes the reports once all journals are read."""
        if any(report.runs is None for report in self.recovered):
            runs = store.rows("SELECT count(*) FROM ingest.created")[0][0]
            self.recovered = [
                report if report.runs is not None else replace(report, runs=runs)
                for report in self.recovered
            ]
            log.warning("%d runs were read again from their journals", runs)

    def _quarantine_damaged(self, error: BaseException) -> None:
        """Quarantines the file unless it is readable. Called while the database is closed.

        The file can be missing: deleted, or quarantined by an earlier failed repair.
        """
        if not self._home.database.exists() and not self._home.database.is_symlink():
            wal(self._home.database).unlink(missing_ok=True)
            return
        if database_file.is_unreadable(error):
            self._quarantine(f"is damaged ({_first(error)})", StoreKind.DAMAGED)
            return
        try:
            database_file.read_through(self._home.database)
        except StoreDamagedError as refused:
            self._quarantine(refused.problem, refused.kind)

    def _quarantine(self, problem: str, kind: StoreKind) -> None:
        old = quarantine(self._home.database, kind)
        self._quarantined_s.append(self._clock())
        self.recovered = [*self.recovered, RecoveredStore(self._home.database, problem, old)]
        log.warning("%s %s: renamed to %s", self._home.database, problem, old.name)


def _first(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


# ---- rebuild -------------------------------------------------------------------------------------


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
    """Row counts per view of the new file, and the quarantined old file if it was unusable."""

    rows: dict[str, int]
    damaged: Path | None


def rebuild(home: Home) -> Rebuilt:
    """Builds a new database as the owner of the home, and replaces the old one at the end.

    Raises:
        HomeInUseError, StoreLockedError: another process owns the home or has the file open;
        nothing is changed. HomeError: the home cannot be written. TargetError: the path is no
        regular file.
    """
    home.prepare()
    disk.check_targets([home.database], overwrite=True)
    lock = owner.acquire(home)
    new = home.database.with_name(f"{home.database.name}.new-{os.getpid()}")
    try:
        problem = _problem(home.database)
        with disk.full_disk_as_home_error(home.path):
            rows = _build(home, new)
        damaged = None if problem is None else quarantine(home.database, problem)
        # DuckDB would replay the old file's log into the new one.
        wal(home.database).unlink(missing_ok=True)
        new.replace(home.database)
        return Rebuilt(rows, damaged)
    finally:
        new.unlink(missing_ok=True)
        wal(new).unlink(missing_ok=True)
        lock.release()


def _problem(database: Path) -> StoreKind | None:
    """The kind of problem of a file; None if usable or missing. Raises StoreLockedError if it is
    open elsewhere.
    """
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
