"""Above every page: the disk of the home is low, and what to do."""

from __future__ import annotations

import contextlib

import streamlit as st

from dashboard import words
from dashboard.frame import session
from gan_runtime.errors import GanRuntimeError


def show() -> None:
    """Nothing as long as there is space, or where the home cannot be opened."""
    with contextlib.suppress(GanRuntimeError):
        runtime = session.opened()
        space = runtime.keeping.space
        if space is not None and space.is_low:
            folder = words.plain(str(runtime.home.path))
            st.warning(
                f"The disk of {folder} has {words.size(space.free)} left. A run that trains saves and stops before it is full. "
                f"The bin holds {words.size(space.bin)}: empty it on the Runs page, or delete runs there.",
                icon=":material/hard_drive:",
            )
