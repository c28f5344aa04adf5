"""Asking for a measurement of showers, and how far it is."""

from __future__ import annotations

from functools import partial

import streamlit as st

from dashboard import actions, change_buttons, job_bar, widgets, words
from dashboard.domains.showers import words as shower_words
from dashboard.job_bar import EndButton
from gan_runtime.commands import commands
from gan_runtime.domains.showers import physics_requests
from gan_runtime.domains.showers.requests import Measured, Wanted
from gan_runtime.jobs.folder import JobLook
from gan_runtime.store.queries import RunRow
from gan_runtime.supervision.runtime import Runtime

COUNTS = (200, 500, 1_000, 2_000, 5_000)
STOP = EndButton("showers.stop", "Stop", "stopping …")
STATES: dict[Measured, str] = {
    "newest": "Newest checkpoint",
    "best": "Best checkpoint",
    "every": "Each epoch, from its weights",
}


def measure(runtime: Runtime, rows: list[RunRow], is_first: bool) -> None:
    """A short form, the job under way, or why the last one failed. `is_first`: nothing is shown yet, so its button is the page's."""
    there = {row.run_id: physics_requests.measurable(runtime.home, row.run_id) for row in rows}
    names = {row.run_id: widgets.title(row) for row in rows if there[row.run_id]}
    if not names:
        st.caption(shower_words.NO_CHECKPOINT)
        return
    looks = {run_id: physics_requests.newest_measurement(runtime.home, run_id) for run_id in names}
    under_way = ((run_id, look) for run_id, look in looks.items() if look is not None and look.is_live)
    busy, busy_look = next(under_way, ("", None))
    if busy_look is not None:
        job_bar.show(runtime, busy_look, partial(_told, names[busy]), STOP)
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        run_id = next(iter(names))
        if len(names) > 1:
            run_id = st.selectbox(
                "Run", list(names), format_func=names.__getitem__, key="showers.measured", width=220
            )
        states = sorted(there[run_id], key=list(STATES).index)
        usual = states.index("best") if "best" in states else 0
        state = st.selectbox(
            "Of", states, usual, format_func=STATES.__getitem__, key=f"showers.state.{run_id}", width=240
        )
        count = st.selectbox(
            "Showers", COUNTS, COUNTS.index(1_000), format_func=words.count, key="showers.count", width=110
        )
        pressed = change_buttons.button(
            "Measure showers",
            key="showers.start",
            type="primary" if is_first else "secondary",
            icon=":material/labs:",
        )
    look = looks[run_id]
    if look is not None and look.end is not None and look.state not in ("finished", "cancelled"):
        st.warning(f"Not measured: {words.plain(look.end.reason)}", icon=":material/warning:")
    if pressed and actions.attempt(lambda: _asked(runtime, Wanted(run_id, state, count))) is not None:
        st.rerun()


def _asked(runtime: Runtime, wanted: Wanted) -> object:
    return commands.measure_physics(runtime.home, wanted, asker=runtime.asker)


def _told(name: str, look: JobLook) -> str:
    return f"Measuring {words.plain(name)}: {job_bar.now(look)}"
