"""When a live page is drawn: at intervals.

It redraws each second, or slower if it would take cores from training. What changes with each
step redraws apart from the rest. A refresh takes about 10 ms of a core with thirty viewers, three
times as much with one. Training loses more than that, because its cores wait for each other.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable

from streamlit.runtime.scriptrunner import get_script_run_ctx

USUAL_SECONDS = 1.0
FIRST_SECONDS = 0.5  # until a run has made its first steps
# If a CPU trains on at most FEW_CORES cores.
SHARED_CPU_SECONDS, FEW_CORES = 1.5, 4
PER_CORE_S, MOST_PER_S = 12.0, 24.0  # refreshes of all viewers, the most that a process draws
REST_SECONDS, REST_SHARED_CPU_SECONDS = 3.0, 6.0  # for what changes once an epoch
REST_SHARE = 1 / 8  # of all refreshes
SEEN_SECONDS = 15.0  # without a refresh, before a viewer no longer counts
# Share of the interval that an answer can be old, so that viewers share it.
OLD = 0.25
# An interval stays while the right one is within this factor: a change redraws the whole page.
SLACK = 2.0


class Audience:
    """The viewers of live pages of this process. Every method is safe to call from any thread."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, cores: int = os.cpu_count() or 1
    ) -> None:
        self._clock, self._cores, self._lock = clock, cores, threading.Lock()
        self._seen: dict[str, float] = {}

    def note(self, viewer: str) -> None:
        """Notes that a page was drawn for this viewer."""
        now = self._clock()
        with self._lock:
            self._seen[viewer] = now
            self._seen = {name: at for name, at in self._seen.items() if now - at <= SEEN_SECONDS}

    def interval(self, accelerator: str) -> float:
        """Seconds between two refreshes of the page of a run on this accelerator."""
        return interval_of(len(self._seen), accelerator, self._cores)

    def rest_interval(self, accelerator: str) -> float:
        """As `interval`, for the rest of a page."""
        return rest_interval_of(len(self._seen), accelerator, self._cores)


def interval_of(viewers: int, accelerator: str, cores: int = os.cpu_count() or 1) -> float:
    """Seconds between two refreshes of a page with so many viewers, in steps of 0.25 s."""
    least = SHARED_CPU_SECONDS if _shares_cpu(accelerator, cores) else USUAL_SECONDS
    return max(least, math.ceil(4 * viewers / _most_per_s(cores)) / 4)


def rest_interval_of(viewers: int, accelerator: str, cores: int = os.cpu_count() or 1) -> float:
    """As `interval_of`, for the rest of a page."""
    least = REST_SHARED_CPU_SECONDS if _shares_cpu(accelerator, cores) else REST_SECONDS
    return max(least, math.ceil(viewers / (REST_SHARE * _most_per_s(cores))))


def _shares_cpu(accelerator: str, cores: int) -> bool:
    """Whether pages and the training run on the same few cores."""
    return accelerator == "cpu" and cores <= FEW_CORES


def _most_per_s(cores: int) -> float:
    return min(MOST_PER_S, PER_CORE_S * cores)


def is_close(interval: float, right: float) -> bool:
    """Whether a page can keep its interval, given the right one."""
    return right / SLACK <= interval <= right * SLACK


_audience = Audience()


def age_s(accelerator: str) -> float:
    """The greatest age of an answer on a live page, in seconds, while tables change several times a
    second.
    """
    return OLD * _audience.interval(accelerator)


def rest_age_s(accelerator: str) -> float:
    """As `age_s`, for the rest of a page."""
    return OLD * _audience.rest_interval(accelerator)


def rest_interval(accelerator: str) -> float:
    """As `interval`, for the rest of the page."""
    return _audience.rest_interval(accelerator)


def interval(accelerator: str) -> float:
    """Seconds between two refreshes of the current page, of a run on this accelerator."""
    context = get_script_run_ctx()
    _audience.note(context.session_id if context else "")
    return _audience.interval(accelerator)
