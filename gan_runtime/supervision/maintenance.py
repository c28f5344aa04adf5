"""The thread that keeps a home in order beside the supervision of its runs: what is old in the bin goes, and space is measured."""

from __future__ import annotations

import logging
import threading
import time

from gan_runtime.records.home import Home
from gan_runtime.store.folder_watcher import Clock
from gan_runtime.supervision import bin
from gan_runtime.supervision.disk_usage import Measure, Space

FIRST_SECONDS, LOOK_SECONDS = (
    3.0,
    30.0,
)  # until the first look, which would take time from the first page; between two
TIDY_SECONDS = 600.0  # between two looks into the bin
log = logging.getLogger("gan_runtime")


class Housekeeping:
    """One for each home that is open; who only looks measures, and removes nothing. Nothing waits for it: walking through gigabytes,
    or removing them, may take a while."""

    def __init__(self, home: Home, is_owned: bool = True, clock: Clock = time.monotonic) -> None:
        self.space: Space | None = None  # None until it was measured
        self._home, self._is_owned, self._clock = home, is_owned, clock
        self._measure = Measure(home)
        self._tidied = float("-inf")
        self._ended, self._looking = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._work, name="gan-housekeeping", daemon=True)

    def begin(self) -> None:
        """Looks by itself from now on."""
        self._thread.start()

    def end(self) -> None:
        """Waits for a look that is under way."""
        self._ended.set()
        self._thread.join()

    def look(self) -> None:
        """Everything that is due."""
        with self._looking:
            if self._is_owned and self._clock() - self._tidied >= TIDY_SECONDS:
                self._tidied = self._clock()
                for run in bin.remove_old(self._home):
                    log.info("run %s is removed: it was in the bin for %d days", run.key, bin.DAYS)
            self.space = self._measure.space()

    def _work(self) -> None:
        pause = FIRST_SECONDS
        while not self._ended.wait(pause):
            pause = LOOK_SECONDS
            try:
                self.look()
            except Exception:  # such as a full disk: the next look comes in a moment
                log.warning("the home could not be kept in order", exc_info=True)
