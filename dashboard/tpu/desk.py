"""The one compile check of this Streamlit process: compiling takes all cores for minutes, so there is one at a time."""

from __future__ import annotations

import threading

import streamlit as st

from gan_runtime.home import Home
from gan_runtime.tpu.check import Check
from gan_runtime.tpu.plan import Plan


class Desk:
    """Every tab sees the same check. A check goes on when its tab is closed, and ends with `clear`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._check: Check | None = None

    def of(self, home: Home, plan: Plan) -> Check:
        """The check of this plan: the one at work, or one that has not been started and knows what is kept."""
        with self._lock:
            known = self._check
        return known if known is not None and known.plan == plan else Check(home, plan)

    def start(self, check: Check) -> None:
        """Ends the check before it and starts this one. Raises as `Check.start`."""
        with self._lock:
            if self._check is not None:
                self._check.cancel()
            self._check = check
            check.start()

    def clear(self) -> None:
        """Ends the check that is at work, if there is one."""
        with self._lock:
            if self._check is not None:
                self._check.cancel()


@st.cache_resource(show_spinner=False, on_release=Desk.clear)
def desk() -> Desk:
    """Made at the first look at the page."""
    return Desk()
