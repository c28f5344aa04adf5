"""What statements pass on their way to the database, so that its owner can open it anew while
none of them is under way.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gan_runtime.base.errors import StoreError

PATIENCE_SECONDS = (
    5.0  # with statements under way; the owner then looks after its runs and tries again
)
# that a new database is the owner's alone, so that nobody sees half of one; pages say so of those
# that take longer
FIRST_SECONDS = 15.0


class Gate:
    """One for each store.

    The owner's thread neither waits before a closed gate nor for an answer that it would have to
    give.
    """

    def __init__(self) -> None:
        self.is_kept = False  # by an owner that opens the database anew where it is damaged
        self._changed = threading.Condition()
        self._within, self._is_shut = 0, False
        self._owners_until = 0.0
        self._owner = threading.local()
        self._asked_s: float | None = (
            None  # when a question ended; None: nobody has asked since the last rest
        )

    @contextmanager
    def passed(self) -> Iterator[None]:
        """For one statement; waits while the database is opened anew."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_shut)
            while not self._is_owner and (left := self._owners_until - time.monotonic()) > 0:
                self._changed.wait(left)
            self._within += 1
        try:
            yield
        finally:
            with self._changed:
                self._within -= 1
                if not self._is_owner:
                    self._asked_s = time.monotonic()
                self._changed.notify_all()

    @contextmanager
    def rest(self, seconds: float) -> Iterator[bool]:
        """Whether somebody has asked since the last rest, and nobody for so many seconds; nobody
        comes in meanwhile. The owner's own statements do not count, as there is always one.
        """
        with self._changed:
            asked_s = self._asked_s
            is_at_rest = asked_s is not None and time.monotonic() - asked_s >= seconds
            if is_at_rest := is_at_rest and self._within == 0 and not self._is_shut:
                self._asked_s = None
            yield is_at_rest

    @contextmanager
    def still(self) -> Iterator[bool]:
        """Whether no statement is under way; nobody comes in meanwhile."""
        with self._changed:
            yield self._within == 0 and not self._is_shut

    @contextmanager
    def shut(self) -> Iterator[None]:
        """Nobody is within, and nobody comes in.

        Raises StoreError when a statement does not end.
        """
        with self._changed:
            self._is_shut = True
            is_empty = self._changed.wait_for(lambda: self._within == 0, PATIENCE_SECONDS)
        try:
            if not is_empty:
                raise StoreError(
                    "the database cannot be opened anew yet: a statement is under way."
                )
            yield
        finally:
            with self._changed:
                self._is_shut, self._owners_until = False, time.monotonic() + FIRST_SECONDS
                self._changed.notify_all()

    def open_to_all(self) -> None:
        """The owner has put in everything that there is."""
        with self._changed:
            self._owners_until = 0.0
            self._changed.notify_all()

    @contextmanager
    def by_owner(self) -> Iterator[None]:
        """Whatever this thread asks within is answered or refused at once, as nobody else
        could help it.
        """
        self._owner.is_here = True
        try:
            yield
        finally:
            self._owner.is_here = False

    def wait_until(self, is_done: Callable[[], bool], seconds: float) -> bool:
        """Whether it is done within so many seconds, for whoever is not the owner."""
        if not self.is_kept or self._is_owner:
            return False
        with self._changed:
            return self._changed.wait_for(is_done, seconds)

    @property
    def _is_owner(self) -> bool:
        return getattr(self._owner, "is_here", False)
