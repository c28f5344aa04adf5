"""The thread that acts for a home, or reads in it: a tick each moment, and what went wrong in the last one."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from gan_runtime.base.errors import GanRuntimeError
from gan_runtime.store.folder_watcher import Clock

TICK_SECONDS = 0.25
TROUBLED_TICK_SECONDS = (
    2.0  # after two in a row that failed; the first may have found what the next one mends
)
WITHIN_SECONDS = 3.0  # that a page waits for a tick: reading all journals anew may take minutes
COMPLAINT_SECONDS = 60.0  # between two entries of the log about the same kind of error
log = logging.getLogger("gan_runtime")


class Heartbeat:
    """One for each home that is open. Every method may be called from any thread."""

    def __init__(self, act: Callable[[], None], clock: Clock) -> None:
        self.trouble = ""  # why the last tick failed; empty when all is well
        self._act, self._clock, self._failures = act, clock, 0
        self._ended, self._begun, self._acting = threading.Event(), threading.Event(), threading.Lock()
        self._complained: dict[str, float] = {}  # kind of error → when it was last logged
        self._thread = threading.Thread(target=self._work, name="gan-runtime", daemon=True)

    def begin(self, at_once: bool = True) -> None:
        """Acts, and from now on by itself. Not `at_once`: returns though the first tick is not over, if that takes long."""
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
        """Acts now. A tick that takes long is under way already, and is not waited for."""
        if self._acting.acquire(timeout=WITHIN_SECONDS):
            try:
                self._tick()
            finally:
                self._acting.release()

    def tick(self) -> None:
        """What goes wrong is kept in `trouble`: a full disk must not end the supervision of all runs."""
        with self._acting:
            self._tick()

    def _tick(self) -> None:
        try:
            self._act()
            self.trouble, self._failures = "", 0
        except Exception as error:
            self._failures += 1
            self.trouble = (
                str(error) if isinstance(error, GanRuntimeError) else f"{type(error).__name__}: {error}"
            )
            self._complain(error)
        self._begun.set()

    def _complain(self, error: Exception) -> None:
        """Into the log, once in a while: a disk stays full for hours, and its log would fill it."""
        now, kind = self._clock(), type(error).__name__
        if now - self._complained.get(kind, -COMPLAINT_SECONDS) >= COMPLAINT_SECONDS:
            self._complained[kind] = now
            is_foreseen = isinstance(error, GanRuntimeError)  # then its sentence says it all
            log.error("the runtime could not act: %s", self.trouble, exc_info=None if is_foreseen else error)

    def _work(self) -> None:
        if not self._begun.is_set():
            self.tick()
        while not self._ended.wait(TROUBLED_TICK_SECONDS if self._failures > 1 else TICK_SECONDS):
            self.tick()
