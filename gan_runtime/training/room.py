"""The disk of a run while it trains: a warning when it is low, and the end of the training while a last checkpoint still fits."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

from gan_runtime.base import disk
from gan_runtime.engines.contract import Arrays
from gan_runtime.records import journal
from gan_runtime.records.journal import JournalWriter

LOOK_SECONDS = 2.0  # between two looks
TOPIC = "disk"


class Room:
    """Asked between the calls of one attempt. `checkpoint_bytes`: of one, as far as it is known."""

    def __init__(
        self,
        folder: Path,
        writer: JournalWriter,
        checkpoint_bytes: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.why = self.advice = ""  # why it must end, and what to do: parts of the sentence that says so
        self._folder, self._writer, self._clock = folder, writer, clock
        self._checkpoint_bytes = checkpoint_bytes
        self._looked, self._warned = float("-inf"), False

    def needed(self, checkpoint_bytes: int) -> None:
        """So large is what is saved."""
        self._checkpoint_bytes = checkpoint_bytes

    def is_short(self, at_once: bool = False) -> bool:
        """Whether there is room for little more than a last checkpoint, and its copy as the best one; once so, it stays so. `at_once`: however
        short ago it was looked at."""
        if self.why or (self._clock() - self._looked < LOOK_SECONDS and not at_once):
            return bool(self.why)
        self._looked = self._clock()
        with contextlib.suppress(OSError):  # a disk that does not answer says what it has at the next write
            self._look(disk.free_bytes(self._folder))
        return bool(self.why)

    def _look(self, free: int) -> None:
        stop_below = disk.LEAST_BYTES + 2 * self._checkpoint_bytes
        if free < stop_below:
            self.why = f"because the disk of {self._folder} has {free / 1e6:,.0f} MB left, less than {stop_below / 1e6:,.0f} MB,"
            self.advice = " once there is space on it"
        if not self._warned and (self.why or free < disk.low_bytes(self._folder)):
            self._warned = True
            self._writer.write(
                journal.Event(level="warning", topic=TOPIC, message=_warning(free, stop_below))
            )


def _warning(free: int, stop_below: int) -> str:
    return (
        f"The disk has {free / 1e6:,.0f} MB left; below {stop_below / 1e6:,.0f} MB this run saves and stops. "
        "Make space: empty the bin, or delete runs."
    )


def size_of(arrays: Arrays) -> int:
    """Bytes of a state."""
    return sum(array.nbytes for array in arrays.values())
