"""What keeps a store up to date as long as a process lives: as the owner of the home, or as one of those who only look."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from pathlib import Path
from typing import Protocol

from gan_runtime.base.errors import StoreDamagedError
from gan_runtime.records.home import Home
from gan_runtime.records.processes import SCRATCH_PREFIX
from gan_runtime.store.folder_watcher import Clock
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store
from gan_runtime.supervision import crash_cleanup, owner
from gan_runtime.supervision.maintenance import Housekeeping
from gan_runtime.supervision.owner import Held
from gan_runtime.supervision.owner_thread import Heartbeat
from gan_runtime.supervision.starters import Starter
from gan_runtime.supervision.store_recovery import Healed, Healing
from gan_runtime.supervision.supervisor import Supervisor


class Upkeep(Protocol):
    """Of one process and one home."""

    home: Home
    store: Store
    heartbeat: Heartbeat
    housekeeping: Housekeeping
    is_reading: bool  # all journals, into a new database

    @property
    def healed(self) -> list[Healed]:
        """What was found of results.duckdb and set aside."""

    def end(self) -> None:
        """Closes the store, and gives up the home if it is owned."""


class Owning:
    """Supervises the runs of a home and writes its results.duckdb. Use `begin`."""

    def __init__(
        self, home: Home, held: Held, grace_seconds: float, starter: Starter | None, clock: Clock
    ) -> None:
        self.home, self._held, self._healing = home, held, Healing(home, clock)
        self.is_reading = False
        self._is_renewed = False  # and the ingestor does not know of it yet
        self.store = self._healing.open()
        try:
            with self.store.gate.by_owner():
                try:
                    self._take_up(grace_seconds, starter, clock)
                except StoreDamagedError:  # a file may open whose tables cannot be read
                    self._healing.mend(self.store)
                    self._take_up(grace_seconds, starter, clock)
        except BaseException:  # such as of DuckDB, for want of memory
            self.store.close()
            raise
        self.heartbeat, self.housekeeping = Heartbeat(self._tick, clock), Housekeeping(home)

    @classmethod
    def begin(cls, home: Home, grace_seconds: float, starter: Starter | None, url: str) -> Owning:
        """Becomes the owner. Raises as `Runtime.open`."""
        home.prepare()
        held = owner.acquire(home, url)
        with contextlib.suppress(OSError):  # of a full disk is told where something is lost by it
            crash_cleanup.of_home(home)
        try:
            upkeep = cls(home, held, grace_seconds, starter, time.monotonic)
        except BaseException:  # or this process would find its own home taken
            held.release()
            raise
        upkeep.heartbeat.begin(at_once=not upkeep.healed)
        upkeep.housekeeping.begin()
        return upkeep

    @property
    def healed(self) -> list[Healed]:
        """See `Healing.told`."""
        return self._healing.told

    def end(self) -> None:
        """Trainers go on by themselves; the next owner finds them."""
        self.housekeeping.end()
        self.heartbeat.end()
        self.store.close()
        self._held.release()

    def _take_up(self, grace_seconds: float, starter: Starter | None, clock: Clock) -> None:
        self._ingestor = Ingestor(self.home, self.store, clock)
        self._supervisor = Supervisor(self.home, self.store, self._ingestor, grace_seconds, clock, starter)

    def _tick(self) -> None:
        self._held.check()
        with self.store.gate.by_owner():
            self._supervisor.tick(self._mend())
            self.store.gate.open_to_all()
            self._healing.read(self.store)
        self.is_reading = False
        self.store.rest()

    def _mend(self) -> Exception | None:
        """Why the store cannot be asked, if so. Its runs need their supervisor all the same."""
        try:
            self._is_renewed |= self._healing.mend(self.store)
            self.is_reading |= self._is_renewed
            if self._is_renewed:
                self._ingestor.recall()
                self._is_renewed = False
        except Exception as error:
            return error
        return None


class Viewing:
    """Looks: a store of its own with everything that the journals say, and no file of the home is touched. Use `begin`."""

    healed: list[Healed] = []  # noqa: RUF012 (nothing is ever set aside)
    is_reading = False

    def __init__(self, home: Home, folder: tempfile.TemporaryDirectory[str], clock: Clock) -> None:
        self.home, self._folder = home, folder
        self.store = Store(Path(folder.name) / home.database.name)
        self._ingestor = Ingestor(home, self.store, clock)
        self.heartbeat = Heartbeat(self._tick, clock)
        self.housekeeping = Housekeeping(home, is_owned=False)

    @classmethod
    def begin(cls, home: Home) -> Viewing:
        """Reads the journals into a file among the temporary ones: pictures of many runs do not fit into memory."""
        folder = tempfile.TemporaryDirectory(prefix=f"{SCRATCH_PREFIX}{os.getpid()}-")
        viewing = cls(home, folder, time.monotonic)
        viewing.heartbeat.begin(at_once=False)
        viewing.housekeeping.begin()
        return viewing

    def end(self) -> None:
        """Removes the file. Whoever still reads in it may go on: the store ends with the last who holds it."""
        self.housekeeping.end()
        self.heartbeat.end()
        self._folder.cleanup()

    def _tick(self) -> None:
        self.home.check_is_there()
        self._ingestor.catch_up_news()
        self.store.rest()
