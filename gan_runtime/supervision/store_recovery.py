"""A results.duckdb that cannot be used is set aside, and its owner reads the journals into a new
one.

Damage shows when the home is opened, or later in any statement, which is then answered from the new
file. Pages and log report it as a `RecoveredStore`. The database holds nothing but what the
journals say, so `rebuild` is also the way from one schema version to the next. The old file is kept
under a name that says what it is and when: with its .wal, results.duckdb.damaged-20260101-120000.
Of files of this version and earlier ones the newest few stay; those of a newer version or another
program are left to the person.
"""

from __future__ import annotations

import logging
import os
import shlex
import time
from dataclasses import dataclass, replace
from pathlib import Path

from gan_runtime.base import disk, output_files
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


MOST_KEPT = 3
_DERIVED = (StoreKind.DAMAGED, StoreKind.OLDER)


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
    target = _free_name(database, kind)
    try:
        if wal(database).exists():  # first, as DuckDB would replay it into the file that comes next
            wal(database).rename(wal(target))
        database.rename(target)
    except OSError as error:
        raise HomeError(
            f"{database} cannot be used, nor be set aside as {target.name} ({error.strerror}):"
            " rename or delete it yourself, or change the rights of its folder; the journals of"
            " all runs are whole."
        ) from None
    _forget_oldest(database)
    return target


def _free_name(database: Path, kind: StoreKind) -> Path:
    """A name that nothing has, nor had within the same second: names then sort by age."""
    name = f"{database.name}.{kind}-{time.strftime('%Y%m%d-%H%M%S')}"
    taken = [path.name.removesuffix(".wal") for path in database.parent.glob(f"{name}*")]
    return database.with_name(f"{name}-{max(map(_place_in_second, taken)) + 1}" if taken else name)


def _place_in_second(name: str) -> int:
    """Of the second, third, … file of one second."""
    parts = name.split("-")  # kind, day, time and, from the second on, place
    return int(parts[3]) if len(parts) > 3 and parts[3].isdigit() else 1


def _forget_oldest(database: Path) -> None:
    found = [
        path for kind in _DERIVED for path in database.parent.glob(f"{database.name}.{kind}-*")
    ]
    files = [path for path in found if path.is_file() and path.suffix != ".wal"]
    kept = sorted(files, key=lambda path: (path.name.split("-")[1:3], _place_in_second(path.name)))
    for path in kept[:-MOST_KEPT]:
        try:
            path.unlink()
            wal(path).unlink(missing_ok=True)
            log.warning("%s is removed: only the newest %d of its kind are kept", path, MOST_KEPT)
        except OSError as error:
            log.warning("%s is one too many and cannot be removed (%s)", path, error.strerror)


# ---- recovery of a home that is open -------------------------------------------------------------


MOST_IN_AN_HOUR = (
    4  # files set aside: they lie on a bad disk; and of openings without a pause between them
)
PAUSE_SECONDS = 60.0
HOUR_S = 3_600.0


@dataclass(frozen=True)
class RecoveredStore:
    """`found`: what was wrong, such as "has schema version 3, …"; `old`: where the old file is now.

    `runs`: how many were read again; None while they are being read.
    """

    database: Path
    found: str
    old: Path
    runs: int | None = None

    @property
    def told(self) -> str:
        """For a person, without the way to remove the old file."""
        read = (
            "The journals of all runs are being read into a new one."
            if self.runs is None
            else (
                f"A new one holds {self.runs:,} {'run' if self.runs == 1 else 'runs'}, read again"
                " from their journals."
            )
        )
        return (
            f"{self.database} {self.found}. It was set aside as {self.old.name}. {read} Nothing"
            " needs the old file; to remove it:"
        )

    @property
    def removal(self) -> str:
        """The command."""
        return f"rm{' -r' if self.old.is_dir() else ''} {shlex.quote(str(self.old))}"

    @property
    def sentence(self) -> str:
        """Both."""
        return f"{self.told} {self.removal}"


class StoreRecovery:
    """Of one owner.

    `open` first, then `mend` before each tick, and `read` after it; by one thread at a time.
    """

    def __init__(self, home: Home, clock: Clock = time.monotonic) -> None:
        self._home, self._clock = home, clock
        self.told: list[RecoveredStore] = []
        # When it was reopened, and when a file was set aside, within the last hour.
        self._renewed_s: list[float] = []
        self._aside_s: list[float] = []

    def open(self) -> Store:
        """The store of the home, rebuilt if need be.

        Raises:
            StoreLockedError, StoreNewerError: the file is another program's just now, or a newer
            version's. StoreError, HomeError: it can neither be used nor set aside.
        """
        try:
            store = Store(self._home.database)
        except StoreDamagedError as error:
            self._set_aside(error.found, error.kind)
            store = Store(self._home.database)
        store.gate.is_kept = True
        return store

    def mend(self, store: Store) -> bool:
        """Reopens the database where a statement has met damage; returns whether it did.

        Raises StoreError, HomeError: it cannot be used, or waits before it tries again.
        """
        if store.damage is None:
            return False
        error = store.damage
        self._check_pace(_first(error))
        log.warning("%s is opened again: %s", self._home.database, _first(error))
        store.renew(lambda: self._make_way(error))
        self._renewed_s.append(self._clock())
        return True

    def _check_pace(self, why: str) -> None:
        now, database = self._clock(), self._home.database
        self._renewed_s = [then for then in self._renewed_s if now - then < HOUR_S]
        self._aside_s = [then for then in self._aside_s if now - then < HOUR_S]
        if len(self._aside_s) >= MOST_IN_AN_HOUR:
            raise StoreError(
                f"{database} was damaged {len(self._aside_s)} times within an hour ({why}): check"
                " its disk, then open the dashboard again."
            )
        if len(self._renewed_s) >= MOST_IN_AN_HOUR and now - self._renewed_s[-1] < PAUSE_SECONDS:
            raise StoreError(
                f"{database} had to be opened again {len(self._renewed_s)} times within an hour"
                f" ({why}), though its file can be read: it is opened again within"
                f" {PAUSE_SECONDS:.0f} s. Look into the log for what goes wrong."
            )

    def read(self, store: Store) -> None:
        """Counts the runs once all journals are read."""
        if any(healed.runs is None for healed in self.told):
            runs = store.rows("SELECT count(*) FROM ingest.created")[0][0]
            self.told = [
                healed if healed.runs is not None else replace(healed, runs=runs)
                for healed in self.told
            ]
            log.warning("%d runs were read again from their journals", runs)

    def _make_way(self, error: BaseException) -> None:
        """Between closing and opening: sets a damaged file aside.

        One that DuckDB has only given up stays if it can be read.

        There may be no file: somebody removed it, or it was set aside before an attempt that
        failed.
        """
        if not self._home.database.exists() and not self._home.database.is_symlink():
            wal(self._home.database).unlink(missing_ok=True)  # of a file that is gone
            return
        if database_file.is_unreadable(error):
            self._set_aside(f"is damaged ({_first(error)})", StoreKind.DAMAGED)
            return
        try:
            database_file.read_through(self._home.database)
        except StoreDamagedError as refused:
            self._set_aside(refused.found, refused.kind)

    def _set_aside(self, found: str, kind: StoreKind) -> None:
        old = set_aside(self._home.database, kind)
        self._aside_s.append(self._clock())
        self.told = [*self.told, RecoveredStore(self._home.database, found, old)]
        log.warning("%s %s: it was set aside as %s", self._home.database, found, old.name)


def _first(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


# ---- python -m gan_runtime rebuild: built aside, put in place at the end, so it is old or new,
# never half


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
    """Rows per view of the new file, and where an unusable old file lies now (None when there was
    none).
    """

    rows: dict[str, int]
    damaged: Path | None


def rebuild(home: Home) -> Rebuilt:
    """Rebuilds the file as the owner of the home.

    An old file that cannot be used is kept under another name.

    Raises:
        HomeInUseError, StoreLockedError: another process owns the home or holds the file; nothing
        is changed. HomeError: the home cannot be written. TargetError: what lies in the file's
        place is no plain file.
    """
    home.prepare()
    output_files.check([home.database], overwrite=True)
    lock = owner.acquire(home)
    new = home.database.with_name(f"{home.database.name}.new-{os.getpid()}")
    try:
        wrong = _what_is_wrong(home.database)
        with disk.told_when_full(home.path):
            rows = _build(home, new)
        damaged = None if wrong is None else set_aside(home.database, wrong)
        wal(home.database).unlink(
            missing_ok=True
        )  # DuckDB would replay the old file's log into the new one
        new.replace(home.database)
        return Rebuilt(rows, damaged)
    finally:
        new.unlink(missing_ok=True)
        wal(new).unlink(missing_ok=True)
        lock.release()


def _what_is_wrong(database: Path) -> StoreKind | None:
    """None as well when there is no file.

    Raises StoreLockedError when another program has it open.
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
