"""The disk of a run while it trains: a warning when it is low, and the end of the training
while a last checkpoint still fits.
"""

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


class DiskRoom:
    """Asked between the calls of one attempt. `checkpoint_bytes`: of one, as far as it is known."""

    def __init__(
        self,
        folder: Path,
        writer: JournalWriter,
        checkpoint_bytes: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.shortage: dict[str, str | int] = {}  # details of Reason.LOW_DISK once it must end
        self._folder, self._writer, self._clock = folder, writer, clock
        self._checkpoint_bytes = checkpoint_bytes
        self._looked, self._warned = float("-inf"), False

    def needed(self, checkpoint_bytes: int) -> None:
        """So large is what is saved."""
        self._checkpoint_bytes = checkpoint_bytes

    def is_short(self, at_once: bool = False) -> bool:
        """Whether there is room for little more than a last checkpoint, and its copy as the best
        one; once so, it stays so. `at_once`: however short ago it was looked at.
        """
        if self.shortage or (self._clock() - self._looked < LOOK_SECONDS and not at_once):
            return bool(self.shortage)
        self._looked = self._clock()
        with contextlib.suppress(
            OSError
        ):  # a disk that does not answer says what it has at the next write
            self._look(disk.free_bytes(self._folder))
        return bool(self.shortage)

    def _look(self, free: int) -> None:
        stop_below = disk.LEAST_BYTES + 2 * self._checkpoint_bytes
        if free < stop_below:
            folder, free_mb, least_mb = (
                str(self._folder),
                round(free / 1e6),
                round(stop_below / 1e6),
            )
            self.shortage = {"folder": folder, "free_mb": free_mb, "least_mb": least_mb}
        if not self._warned and (self.shortage or free < disk.low_bytes(self._folder)):
            self._warned = True
            self._writer.write(
                journal.Event(level="warning", topic=TOPIC, message=_warning(free, stop_below))
            )


def _warning(free: int, stop_below: int) -> str:
    return (
        f"The disk has {free / 1e6:,.0f} MB left; below {stop_below / 1e6:,.0f} MB this run saves"
        " and stops. Make space: empty the bin, or delete runs."
    )


def size_of(arrays: Arrays) -> int:
    """Bytes of a state."""
    return sum(array.nbytes for array in arrays.values())
