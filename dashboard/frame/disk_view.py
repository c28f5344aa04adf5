"""Above every page: a disk of the home is low, and what to do."""

from __future__ import annotations

import contextlib
from pathlib import Path

import streamlit as st

from dashboard import words
from dashboard.frame import session
from gan_runtime.base.errors import GanRuntimeError
from gan_runtime.records.home import Home
from gan_runtime.supervision.maintenance import Space


def show() -> None:
    """Nothing as long as there is space, or where the home cannot be opened."""
    with contextlib.suppress(GanRuntimeError):
        runtime = session.opened()
        space = runtime.housekeeping.space
        if space is None:
            return
        for folder, free in _low(space, runtime.home):
            st.warning(
                f"The disk of {words.plain(str(folder))} has {words.size(free)} left. A run that trains saves and stops before it is "
                f"full. The bin holds {words.size(space.bin)}: empty it on the Runs page, or delete runs there.",
                icon=":material/hard_drive:",
            )


def _low(space: Space, home: Home) -> list[tuple[Path, int]]:
    """The folders whose disks are low, with what is left on each."""
    low = [(home.path, space.free)] if space.is_low else []
    if space.runs_disk is not None and space.runs_disk.is_low:
        low.append((home.runs, space.runs_disk.free))
    return low
