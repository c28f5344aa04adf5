"""The store heals: a results.duckdb that cannot be used is set aside, and its owner reads the journals into a new one.

Found when the home is opened, or later by any statement: then the file is opened anew, and whoever asked is answered from that one. What was done
is a `Healed`, which pages and log tell. The database holds nothing but what the journals say, so making it anew is also the way from
one schema version to the next.
"""

from __future__ import annotations

import logging
import shlex
import time
from dataclasses import dataclass, replace
from pathlib import Path

from gan_runtime.base.errors import StoreDamagedError, StoreError, StoreKind
from gan_runtime.records.home import Home
from gan_runtime.store import database_file
from gan_runtime.store.folder_watcher import Clock
from gan_runtime.store.store import Store
from gan_runtime.supervision import quarantine

MOST_IN_AN_HOUR = 4  # files set aside: they lie on a bad disk; and of openings without a pause between them
PAUSE_SECONDS = 60.0
HOUR_S = 3_600.0
log = logging.getLogger("gan_runtime")


@dataclass(frozen=True)
class Healed:
    """`found`: what was wrong, such as "has schema version 3, …". `old`: where the old file lies. `runs`: read again; None while they are read."""

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
            else f"A new one holds {self.runs:,} {'run' if self.runs == 1 else 'runs'}, read again from their journals."
        )
        return f"{self.database} {self.found}. It was set aside as {self.old.name}. {read} Nothing needs the old file; to remove it:"

    @property
    def removal(self) -> str:
        """The command."""
        return f"rm{' -r' if self.old.is_dir() else ''} {shlex.quote(str(self.old))}"

    @property
    def sentence(self) -> str:
        """Both."""
        return f"{self.told} {self.removal}"


class Healing:
    """Of one owner. `open` first, then `mend` before each tick, and `read` after it; by one thread at a time."""

    def __init__(self, home: Home, clock: Clock = time.monotonic) -> None:
        self._home, self._clock = home, clock
        self.told: list[Healed] = []
        # When it was opened anew, and when a file was set aside, within the last hour.
        self._renewed_s: list[float] = []
        self._aside_s: list[float] = []

    def open(self) -> Store:
        """The store of the home, made anew if need be.

        Raises:
            StoreLockedError, StoreNewerError: the file is another program's just now, or a newer version's.
            StoreError, HomeError: it can neither be used nor set aside.
        """
        try:
            store = Store(self._home.database)
        except StoreDamagedError as error:
            self._set_aside(error.found, error.kind)
            store = Store(self._home.database)
        store.gate.is_kept = True
        return store

    def mend(self, store: Store) -> bool:
        """Opens the database anew where a statement has met damage; whether it did. Raises StoreError, HomeError if it cannot, or waits."""
        if store.damage is None:
            return False
        error = store.damage
        self._check_pace(_first(error))
        log.warning("%s is opened anew: %s", self._home.database, _first(error))
        store.renew(lambda: self._make_way(error))
        self._renewed_s.append(self._clock())
        return True

    def _check_pace(self, why: str) -> None:
        now, database = self._clock(), self._home.database
        self._renewed_s = [then for then in self._renewed_s if now - then < HOUR_S]
        self._aside_s = [then for then in self._aside_s if now - then < HOUR_S]
        if len(self._aside_s) >= MOST_IN_AN_HOUR:
            raise StoreError(
                f"{database} was damaged {len(self._aside_s)} times within an hour ({why}): look after its disk, "
                "then open the dashboard again."
            )
        if len(self._renewed_s) >= MOST_IN_AN_HOUR and now - self._renewed_s[-1] < PAUSE_SECONDS:
            raise StoreError(
                f"{database} had to be opened anew {len(self._renewed_s)} times within an hour ({why}), though its file can be read: "
                f"it is opened again within {PAUSE_SECONDS:.0f} s. Look into the log for what goes wrong."
            )

    def read(self, store: Store) -> None:
        """Notes how much is there again, once all journals were read."""
        if any(healed.runs is None for healed in self.told):
            runs = store.rows("SELECT count(*) FROM ingest.created")[0][0]
            self.told = [
                healed if healed.runs is not None else replace(healed, runs=runs) for healed in self.told
            ]
            log.warning("%d runs were read again from their journals", runs)

    def _make_way(self, error: BaseException) -> None:
        """Between closing and opening: a damaged file goes aside, one that DuckDB has only given up stays if all of it can be read. None may
        be there: somebody removed it, or it is aside since a try that could not open another one."""
        if not self._home.database.exists() and not self._home.database.is_symlink():
            quarantine.wal(self._home.database).unlink(missing_ok=True)  # of a file that is gone
            return
        if database_file.is_unreadable(error):
            self._set_aside(f"is damaged ({_first(error)})", StoreKind.DAMAGED)
            return
        try:
            database_file.read_through(self._home.database)
        except StoreDamagedError as refused:
            self._set_aside(refused.found, refused.kind)

    def _set_aside(self, found: str, kind: StoreKind) -> None:
        old = quarantine.set_aside(self._home.database, kind)
        self._aside_s.append(self._clock())
        self.told = [*self.told, Healed(self._home.database, found, old)]
        log.warning("%s %s: it was set aside as %s", self._home.database, found, old.name)


def _first(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
