"""How often a Live page is redrawn: each second, but where many look on, they share what the dashboard may take from the training.

A refresh takes about 20 ms of a core beyond what is made once for all. Ten of them a second are a tenth of two cores.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from streamlit.runtime.scriptrunner import get_script_run_ctx

USUAL_SECONDS = 1.0
TOGETHER_PER_S = 10.0  # refreshes of all viewers
SEEN_SECONDS = 15.0  # after its last refresh a viewer is taken for gone
SLACK = 2.0  # an interval is kept as long as the right one is within this factor: to change it a page is drawn as a whole


class Audience:
    """Who looks at live pages of this process. Every method may be called from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._seen: dict[str, float] = {}

    def note(self, viewer: str) -> None:
        """This one has just been drawn a page."""
        now = self._clock()
        with self._lock:
            self._seen[viewer] = now
            self._seen = {name: at for name, at in self._seen.items() if now - at <= SEEN_SECONDS}

    @property
    def interval(self) -> float:
        """Seconds between two refreshes of one page."""
        return interval_of(len(self._seen))


def interval_of(viewers: int) -> float:
    """Seconds between two refreshes of one page where so many look on, in halves."""
    return max(USUAL_SECONDS, math.ceil(2 * viewers / TOGETHER_PER_S) / 2)


def is_kept(interval: float, right: float) -> bool:
    """Whether a page that is redrawn so often may stay so."""
    return right / SLACK <= interval <= right * SLACK


_audience = Audience()


def interval() -> float:
    """Seconds between two refreshes of the page that is being drawn now."""
    context = get_script_run_ctx()
    _audience.note(context.session_id if context else "")
    return _audience.interval
