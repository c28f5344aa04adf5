"""The thread that acts for a home, as its owner or as one of those who only look: a tick each
moment.
"""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from gan_runtime.base.errors import GanRuntimeError, StoreDamagedError
from gan_runtime.records.home import Home
from gan_runtime.records.processes import SCRATCH_PREFIX
from gan_runtime.store.folder_watcher import Clock
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store
from gan_runtime.supervision import owner, recovery
from gan_runtime.supervision.maintenance import Maintenance
from gan_runtime.supervision.owner import Ownership
from gan_runtime.supervision.starters import Starter
from gan_runtime.supervision.store_recovery import RecoveredStore, StoreRecovery
from gan_runtime.supervision.supervisor import Supervisor

log = logging.getLogger("gan_runtime")


# ---- the thread ----------------------------------------------------------------------------------


TICK_SECONDS = 0.25
TROUBLED_TICK_SECONDS = (
    2.0  # after two in a row that failed; the first may have found what the next one mends
)
WITHIN_SECONDS = 3.0  # that a page waits for a tick: reading all journals anew may take minutes
COMPLAINT_SECONDS = 60.0  # between two entries of the log about the same kind of error


class OwnerThread:
    """One for each home that is open. Every method may be called from any thread."""

    def __init__(self, act: Callable[[], None], clock: Clock) -> None:
        self.trouble = ""  # why the last tick failed; empty when all is well
        self._act, self._clock, self._failures = act, clock, 0
        self._ended, self._begun, self._acting = (
            threading.Event(),
            threading.Event(),
            threading.Lock(),
        )
        self._complained: dict[str, float] = {}  # kind of error → when it was last logged
        self._thread = threading.Thread(target=self._work, name="gan-runtime", daemon=True)

    def begin(self, at_once: bool = True) -> None:
        """Acts, and from now on by itself.

        Not `at_once`: does not wait for a first tick that takes long.
        """
        if at_once:
            self.tick()
        self._thread.start()
        self._begun.wait(WITHIN_SECONDS)

    @property
    def has_begun(self) -> bool:
        """Whether a tick has ended: before, not all journals are read."""
        return self._begun.is_set()

    def end(self) -> None:
        """Waits for a tick that is under way."""
        self._ended.set()
        self._thread.join()

    def refresh(self) -> None:
        """Acts now; does not wait for a long tick that is under way."""
        if self._acting.acquire(timeout=WITHIN_SECONDS):
            try:
                self._tick()
            finally:
                self._acting.release()

    def tick(self) -> None:
        """What goes wrong is kept in `trouble`: a full disk must not end the supervision of all
        runs.
        """
        with self._acting:
            self._tick()

    def _tick(self) -> None:
        try:
            self._act()
            self.trouble, self._failures = "", 0
        except Exception as error:
            self._failures += 1
            self.trouble = (
                str(error)
                if isinstance(error, GanRuntimeError)
                else f"{type(error).__name__}: {error}"
            )
            self._complain(error)
        self._begun.set()

    def _complain(self, error: Exception) -> None:
        """Into the log, once in a while: a disk stays full for hours, and its log would fill it."""
        now, kind = self._clock(), type(error).__name__
        if now - self._complained.get(kind, -COMPLAINT_SECONDS) >= COMPLAINT_SECONDS:
            self._complained[kind] = now
            is_foreseen = isinstance(error, GanRuntimeError)  # then its sentence says it all
            log.error(
                "the runtime could not act: %s",
                self.trouble,
                exc_info=None if is_foreseen else error,
            )

    def _work(self) -> None:
        if not self._begun.is_set():
            self.tick()
        while not self._ended.wait(TROUBLED_TICK_SECONDS if self._failures > 1 else TICK_SECONDS):
            self.tick()


# ---- what it keeps up to date --------------------------------------------------------------------


class OpenHome(Protocol):
    """Of one process and one home."""

    home: Home
    store: Store
    thread: OwnerThread
    housekeeping: Maintenance
    is_reading: bool  # all journals, into a new database

    @property
    def healed(self) -> list[RecoveredStore]:
        """Old files of results.duckdb that were set aside."""

    def end(self) -> None:
        """Closes the store, and gives up the home if it is owned."""


class OwnedHome:
    """Supervises the runs of a home and writes its results.duckdb. Use `begin`."""

    def __init__(
        self,
        home: Home,
        held: Ownership,
        grace_seconds: float,
        starter: Starter | None,
        clock: Clock,
    ) -> None:
        self.home, self._held, self._recovery = home, held, StoreRecovery(home, clock)
        self.is_reading = False
        self._is_renewed = False  # and the ingestor does not know of it yet
        self.store = self._recovery.open()
        try:
            with self.store.gate.by_owner():
                try:
                    self._take_up(grace_seconds, starter, clock)
                except StoreDamagedError:  # a file may open whose tables cannot be read
                    self._recovery.mend(self.store)
                    self._take_up(grace_seconds, starter, clock)
        except BaseException:  # such as of DuckDB, for want of memory
            self.store.close()
            raise
        self.thread, self.housekeeping = OwnerThread(self._tick, clock), Maintenance(home)

    @classmethod
    def begin(
        cls, home: Home, grace_seconds: float, starter: Starter | None, url: str
    ) -> OwnedHome:
        """Becomes the owner. Raises as `Runtime.open`."""
        home.prepare()
        held = owner.acquire(home, url)
        with contextlib.suppress(OSError):  # a full disk is reported where something is lost by it
            recovery.clean_home(home)
        try:
            owned = cls(home, held, grace_seconds, starter, time.monotonic)
        except BaseException:  # or this process would find its own home taken
            held.release()
            raise
        owned.thread.begin(at_once=not owned.healed)
        owned.housekeeping.begin()
        return owned

    @property
    def healed(self) -> list[RecoveredStore]:
        """See `StoreRecovery.told`."""
        return self._recovery.told

    def end(self) -> None:
        """Trainers go on by themselves; the next owner finds them."""
        self.housekeeping.end()
        self.thread.end()
        self.store.close()
        self._held.release()

    def _take_up(self, grace_seconds: float, starter: Starter | None, clock: Clock) -> None:
        self._ingestor = Ingestor(self.home, self.store, clock)
        self._supervisor = Supervisor(
            self.home, self.store, self._ingestor, grace_seconds, clock, starter
        )

    def _tick(self) -> None:
        self._held.check()
        with self.store.gate.by_owner():
            self._supervisor.tick(self._mend())
            self.store.gate.open_to_all()
            self._recovery.read(self.store)
        self.is_reading = False
        self.store.rest()

    def _mend(self) -> Exception | None:
        """Why the store cannot be asked, if so. The supervisor acts on its runs in any case."""
        try:
            self._is_renewed |= self._recovery.mend(self.store)
            self.is_reading |= self._is_renewed
            if self._is_renewed:
                self._ingestor.recall()
                self._is_renewed = False
        except Exception as error:
            return error
        return None


class ViewedHome:
    """For viewers: a store of its own with all that the journals say; no file of the home is
    touched. Use `begin`.
    """

    healed: list[RecoveredStore] = []  # noqa: RUF012 (nothing is ever set aside)
    is_reading = False

    def __init__(self, home: Home, folder: tempfile.TemporaryDirectory[str], clock: Clock) -> None:
        self.home, self._folder = home, folder
        self.store = Store(Path(folder.name) / home.database.name)
        self._ingestor = Ingestor(home, self.store, clock)
        self.thread = OwnerThread(self._tick, clock)
        self.housekeeping = Maintenance(home, is_owned=False)

    @classmethod
    def begin(cls, home: Home) -> ViewedHome:
        """Reads the journals into a file among the temporary ones: pictures of many runs do not fit
        into memory.
        """
        folder = tempfile.TemporaryDirectory(prefix=f"{SCRATCH_PREFIX}{os.getpid()}-")
        viewing = cls(home, folder, time.monotonic)
        viewing.thread.begin(at_once=False)
        viewing.housekeeping.begin()
        return viewing

    def end(self) -> None:
        """Removes the file. Readers may go on: the store ends with the last of them."""
        self.housekeeping.end()
        self.thread.end()
        self._folder.cleanup()

    def _tick(self) -> None:
        self.home.check_is_there()
        self._ingestor.catch_up_news()
        self.store.rest()
