"""When a page is drawn: its first screen before what lies below it, and a live one again and again.

First screens: a chart costs a browser 70 ms and more, whether or not it can be seen. So the first
pass over a page in a window draws what stands on its first screen with fewer points of its curves,
and says what is to come; the browser draws that, asks again by itself, and gets the page as a
whole. What stands above does not move. Why: docs/decisions/24-pages-under-load.md.

Live pages: they are redrawn each second, but not so often that it takes from a training on the same
few cores. What changes with each step is redrawn apart from the rest of the page. Before thirty
viewers a refresh takes some 10 ms of a core, its part of what is made once for all included; before
one viewer, who has all of it made for himself, three times as much. A training loses more than
that, as its cores wait for each other.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable
from itertools import count

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

PAGES = ("run", "compare")  # what lies below the first screen of the others costs little
POINTS = 80  # of a curve: what a browser takes for each point is half of what it draws a chart in
PAUSE_SECONDS = 1.2  # a slow browser has drawn the first screen by then, undisturbed
MARK = "rest_follows"  # on the page, until the rest is there
SEEN = "first_screen.seen"  # in the session, which is the window's


def stands_alone(page: str) -> bool:
    """Whether this pass draws the first screen alone: the first one over this page in this window.

    Else the page is drawn whole.
    """
    seen = st.session_state.get(SEEN, frozenset())
    st.session_state[SEEN] = seen | {page}
    return page not in seen


def rest_follows(what: str) -> None:
    """At the end of such a pass: a sentence, and the browser asks for the page once more.

    `what`: "Numbers and results".
    """
    with st.container(key=MARK):
        st.caption(f"{what} follow in a moment.")
    passes = count()

    def ask_again() -> None:
        if next(passes):
            st.rerun()

    st.fragment(ask_again, run_every=PAUSE_SECONDS)()


USUAL_SECONDS = 1.0
BESIDE_SECONDS, FEW_CORES = (
    1.5,
    4,
)  # of a run that trains on the CPU, where that has at most so many cores
PER_CORE_S, MOST_PER_S = 12.0, 24.0  # refreshes of all viewers; one process draws no more than that
REST_SECONDS, REST_BESIDE_SECONDS = 3.0, 6.0  # of what changes once an epoch
REST_SHARE = 1 / 8  # of all refreshes
SEEN_SECONDS = 15.0  # after its last refresh a viewer is taken for gone
# of the interval: so old may be what is drawn, so that viewers who come within it share what was
# made for the first of them
OLD = 0.25
# an interval is kept as long as the right one is within this factor: to change it a page is drawn
# as a whole
SLACK = 2.0


class Audience:
    """Who looks at live pages of this process. Every method may be called from any thread."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, cores: int = os.cpu_count() or 1
    ) -> None:
        self._clock, self._cores, self._lock = clock, cores, threading.Lock()
        self._seen: dict[str, float] = {}

    def note(self, viewer: str) -> None:
        """This one has just been drawn a page."""
        now = self._clock()
        with self._lock:
            self._seen[viewer] = now
            self._seen = {name: at for name, at in self._seen.items() if now - at <= SEEN_SECONDS}

    def interval(self, accelerator: str) -> float:
        """Seconds between two refreshes of one page, of a run on this accelerator."""
        return interval_of(len(self._seen), accelerator, self._cores)

    def rest_interval(self, accelerator: str) -> float:
        """As `interval`, of the rest of a page."""
        return rest_interval_of(len(self._seen), accelerator, self._cores)


def interval_of(viewers: int, accelerator: str, cores: int = os.cpu_count() or 1) -> float:
    """Seconds between two refreshes of one page where so many look on, in quarters."""
    least = BESIDE_SECONDS if _is_beside(accelerator, cores) else USUAL_SECONDS
    return max(least, math.ceil(4 * viewers / _most_per_s(cores)) / 4)


def rest_interval_of(viewers: int, accelerator: str, cores: int = os.cpu_count() or 1) -> float:
    """As `interval_of`, of the rest of a page."""
    least = REST_BESIDE_SECONDS if _is_beside(accelerator, cores) else REST_SECONDS
    return max(least, math.ceil(viewers / (REST_SHARE * _most_per_s(cores))))


def _is_beside(accelerator: str, cores: int) -> bool:
    """Whether pages take from the training that they show."""
    return accelerator == "cpu" and cores <= FEW_CORES


def _most_per_s(cores: int) -> float:
    return min(MOST_PER_S, PER_CORE_S * cores)


def is_kept(interval: float, right: float) -> bool:
    """Whether a page that is redrawn so often may stay so."""
    return right / SLACK <= interval <= right * SLACK


_audience = Audience()


def age_s(accelerator: str) -> float:
    """How old an answer may be that is drawn on such a page, while tables change several
    times a second.
    """
    return OLD * _audience.interval(accelerator)


def rest_age_s(accelerator: str) -> float:
    """As `age_s`, in the rest of a page."""
    return OLD * _audience.rest_interval(accelerator)


def rest_interval(accelerator: str) -> float:
    """As `interval`, of the rest of the page."""
    return _audience.rest_interval(accelerator)


def interval(accelerator: str) -> float:
    """Seconds between two refreshes of the page that is being drawn now, of a run on this
    accelerator.
    """
    context = get_script_run_ctx()
    _audience.note(context.session_id if context else "")
    return _audience.interval(accelerator)
