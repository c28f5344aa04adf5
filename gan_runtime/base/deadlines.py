"""How long something has stayed as it is, by a clock that nobody can set."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


class Patience:
    """Its own watch: times of files and records come from other clocks, which may be an hour
    off.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: dict[tuple[str, str], tuple[Any, float]] = {}

    def seconds(self, what: str, run_id: str, value: Any) -> float:
        """Since `value` was first given for that question and run; 0 when it is another one
        than the last time.
        """
        now = self._clock()
        known, since = self._since.setdefault((what, run_id), (value, now))
        if known != value:
            self._since[(what, run_id)] = (value, now)
            return 0.0
        return now - since
