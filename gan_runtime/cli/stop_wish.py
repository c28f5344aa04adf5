"""Ctrl-C while something is followed that another process does."""

from __future__ import annotations

import signal
from types import FrameType


class StopWish:
    """Turns Ctrl-C and SIGTERM into a wish that the follower reads. A second Ctrl-C ends this program at once."""

    def __init__(self) -> None:
        self.is_made = False

    def _make(self, _number: int, _frame: FrameType | None) -> None:
        self.is_made = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def __enter__(self) -> StopWish:
        self._before = {
            number: signal.signal(number, self._make) for number in (signal.SIGINT, signal.SIGTERM)
        }
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
