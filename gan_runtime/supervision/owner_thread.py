"""The thread of an open home, for its owner or for a reader. It runs a tick every TICK_SECONDS."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

from gan_runtime.base.errors import GanRuntimeError, StoreDamagedError
from gan_runtime.records import processes
from gan_runtime.records.home import Home
from gan_runtime.store.folder_watcher import Clock
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store
from gan_runtime.supervision import owner, recovery
from gan_runtime.supervision.maintenance import Maintenance
from gan_runtime.supervision.notifications import Notifier
from gan_runtime.supervision.owner import Ownership
from gan_runtime.supervision.starters import Starter
from gan_runtime.supervision.store_recovery import RecoveredStore, StoreRecovery
from gan_runtime.supervision.supervisor import Supervisor

log = logging.getLogger("gan_runtime")


# ---- the thread ----------------------------------------------------------------------------------


TICK_SECONDS = 0.25
# After two failures in a row; the tick after the first can repair the cause.
FAILED_TICK_SECONDS = 2.0
# Limit for a page that waits for a tick, since reading all journals can take minutes.
WITHIN_SECONDS = 3.0
LOG_SECONDS = 60.0  # between two log entries about one kind of error


class OwnerThread:
    """Runs `act` periodically in a thread. Methods are thread-safe."""

    def __init__(self, act: Callable[[], None], clock: Clock) -> None:
        self.trouble = ""  # why the last tick failed, or ""
        self._act, self._clock, self._failures = act, clock, 0
        self._ended, self._begun, self._acting = (
            threading.Event(),
            threading.Event(),
            threading.Lock(),
        )
        self._logged_s: dict[str, float] = {}  # kind of error → time of its last log entry
        self._thread = threading.Thread(target=self._work, name="gan-runtime", daemon=True)

    def begin(self, at_once: bool = True) -> None:
        """Starts the thread. `at_once`: waits for the first tick to end, without a time limit."""
        if at_once:
            self.tick()
        self._thread.start()
        self._begun.wait(WITHIN_SECONDS)

    @property
    def has_begun(self) -> bool:
        """Whether the first tick has ended; before that, some journals are unread."""
        return self._begun.is_set()

    def end(self) -> None:
        """Ends the thread after a tick in progress."""
        self._ended.set()
        self._thread.join()

    def refresh(self) -> None:
        """Runs a tick now, unless a long one is in progress."""
        if self._acting.acquire(timeout=WITHIN_SECONDS):
            try:
                self._tick()
            finally:
                self._acting.release()

    def tick(self) -> None:
        """Runs one tick. An error is stored in `trouble`, since a full disk must not end the
        supervision of all runs.
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
            self._log(error)
        self._begun.set()

    def _log(self, error: Exception) -> None:
        """Logs an error at most once per minute, since a disk can stay full for hours."""
        now, kind = self._clock(), type(error).__name__
        if now - self._logged_s.get(kind, -LOG_SECONDS) >= LOG_SECONDS:
            self._logged_s[kind] = now
            is_expected = isinstance(error, GanRuntimeError)  # the sentence is enough
            log.error(
                "the owner could not act: %s", self.trouble, exc_info=None if is_expected else error
            )

    def _work(self) -> None:
        if not self._begun.is_set():
            self.tick()
        while not self._ended.wait(FAILED_TICK_SECONDS if self._failures > 1 else TICK_SECONDS):
            self.tick()


# ---- open homes ----------------------------------------------------------------------------------


class OpenHome(Protocol):
    """A home that this process has open."""

    home: Home
    store: Store
    thread: OwnerThread
    maintenance: Maintenance
    is_reading: bool  # whether all journals are being read into a new database

    @property
    def recovered(self) -> list[RecoveredStore]:
        """Files of results.duckdb that were quarantined."""

    def end(self) -> None:
        """Closes the database and ends the ownership."""


class OwnedHome:
    """Supervises the runs of a home and writes its database. Use `begin`."""

    def __init__(
        self,
        home: Home,
        ownership: Ownership,
        grace_seconds: float,
        starter: Starter | None,
        clock: Clock,
    ) -> None:
        self.home, self._ownership, self._recovery = home, ownership, StoreRecovery(home, clock)
        self.is_reading = False
        self._is_renewed = False  # the database was reopened, so the ingestor must restart
        self.store = self._recovery.open()
        try:
            with self.store.barrier.by_owner():
                try:
                    self._connect(grace_seconds, starter, clock)
                except StoreDamagedError:  # a file can open although its tables are unreadable
                    self._recovery.repair(self.store)
                    self._connect(grace_seconds, starter, clock)
        except BaseException:  # such as out of memory
            self.store.close()
            raise
        self.thread, self.maintenance = OwnerThread(self._tick, clock), Maintenance(home)
        self.notifier = Notifier(
            home, self.store, lambda: self.thread.has_begun and not self.is_reading, clock
        )

    @classmethod
    def begin(
        cls, home: Home, grace_seconds: float, starter: Starter | None, url: str
    ) -> OwnedHome:
        """Becomes the owner. Raises as `Runtime.open`."""
        home.prepare()
        ownership = owner.acquire(home, url)
        with contextlib.suppress(OSError):  # such as a full disk
            recovery.clean_home(home)
        try:
            owned = cls(home, ownership, grace_seconds, starter, time.monotonic)
        except BaseException:
            ownership.release()
            raise
        owned.thread.begin(at_once=not owned.recovered)
        owned.maintenance.begin()
        owned.notifier.begin()
        return owned

    @property
    def recovered(self) -> list[RecoveredStore]:
        """Files of results.duckdb that were quarantined."""
        return self._recovery.recovered

    def end(self) -> None:
        """Ends the ownership. Trainers continue, and the next owner supervises them."""
        self.maintenance.end()
        self.thread.end()
        self.notifier.end()
        self.store.close()
        self._ownership.release()

    def _connect(self, grace_seconds: float, starter: Starter | None, clock: Clock) -> None:
        self._ingestor = Ingestor(self.home, self.store, clock)
        self._supervisor = Supervisor(
            self.home, self.store, self._ingestor, grace_seconds, clock, starter
        )

    def _tick(self) -> None:
        self._ownership.check()
        with self.store.barrier.by_owner():
            self._supervisor.tick(self._repair())
            self.store.barrier.open_to_all()
            self._recovery.count_runs(self.store)
        self.is_reading = False
        self.store.rest()

    def _repair(self) -> Exception | None:
        """Repairs the database if needed; returns the error if it still does not answer."""
        try:
            self._is_renewed |= self._recovery.repair(self.store)
            self.is_reading |= self._is_renewed
            if self._is_renewed:
                self._ingestor.recall()
                self._is_renewed = False
        except Exception as error:
            return error
        return None


class ViewedHome:
    """A home that this process only reads, into a temporary database. Use `begin`."""

    recovered: list[RecoveredStore] = []  # noqa: RUF012 (always empty)
    is_reading = False

    def __init__(self, home: Home, clock: Clock) -> None:
        self.home, self._folder = home, contextlib.ExitStack()
        scratch = self._folder.enter_context(processes.scratch_folder())
        self.store = Store(scratch / home.database.name)
        self._ingestor = Ingestor(home, self.store, clock)
        self.thread = OwnerThread(self._tick, clock)
        self.maintenance = Maintenance(home, is_owned=False)

    @classmethod
    def begin(cls, home: Home) -> ViewedHome:
        """Reads the journals into a temporary database file, since images of many runs do not fit
        into memory.
        """
        viewing = cls(home, time.monotonic)
        viewing.thread.begin(at_once=False)
        viewing.maintenance.begin()
        return viewing

    def end(self) -> None:
        """Removes the file. Readers can continue, since the database closes with the
        last reader.
        """
        self.maintenance.end()
        self.thread.end()
        self._folder.close()

    def _tick(self) -> None:
        self.home.check_is_there()
        self._ingestor.catch_up_news()
        self.store.rest()
