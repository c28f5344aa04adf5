"""How long a state has lasted, by a monotonic clock. The times of files and records come from other
clocks, which may be an hour off.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


class StateTimer:
    """One clock for several states of several runs."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: dict[tuple[str, str], tuple[Any, float]] = {}

    def seconds(self, state: str, run_id: str, value: Any) -> float:
        """Since the first of the latest calls with this `value`; 0 when the value has changed."""
        now = self._clock()
        previous, since = self._since.setdefault((state, run_id), (value, now))
        if previous != value:
            self._since[(state, run_id)] = (value, now)
            return 0.0
        return now - since
