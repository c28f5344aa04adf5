"""Asking for a measurement on the Physics page, and how far it is."""

from __future__ import annotations

import streamlit as st

from dashboard import actions, widgets, words
from dashboard.physics import words as physics_words
from gan_runtime.jobs.physics_wanted import Measured, Wanted
from gan_runtime.runtime import commands, physics_requests
from gan_runtime.runtime.runtime import ASKER, Runtime
from gan_runtime.store.queries import RunRow

COUNTS = (200, 500, 1_000, 2_000, 5_000)
SECONDS = 1.0  # between two looks at a job
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
        st.caption(physics_words.NO_CHECKPOINT)
        return
    looks = {run_id: physics_requests.newest_measurement(runtime.home, run_id) for run_id in names}
    busy = next((run_id for run_id, look in looks.items() if look is not None and look.is_live), None)
    if busy is not None:
        st.fragment(_progress, run_every=SECONDS)(runtime, busy, names[busy])
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        run_id = next(iter(names))
        if len(names) > 1:
            run_id = st.selectbox(
                "Run", list(names), format_func=names.__getitem__, key="physics.measured", width=220
            )
        states = sorted(there[run_id], key=list(STATES).index)
        usual = states.index("best") if "best" in states else 0
        state = st.selectbox(
            "Of", states, usual, format_func=STATES.__getitem__, key=f"physics.state.{run_id}", width=240
        )
        count = st.selectbox(
            "Showers", COUNTS, COUNTS.index(1_000), format_func=words.count, key="physics.count", width=110
        )
        pressed = st.button(
            "Measure showers",
            key="physics.start",
            type="primary" if is_first else "secondary",
            icon=":material/labs:",
        )
    look = looks[run_id]
    if look is not None and look.end is not None and look.state not in ("finished", "cancelled"):
        st.warning(f"Not measured: {words.plain(look.end.reason)}", icon=":material/warning:")
    if pressed and actions.attempt(lambda: _asked(runtime, Wanted(run_id, state, count))) is not None:
        st.rerun()


def _asked(runtime: Runtime, wanted: Wanted) -> object:
    return commands.measure_physics(runtime.home, wanted, asker=ASKER)


def _progress(runtime: Runtime, run_id: str, name: str) -> None:
    """Redraws alone; the page once more when the job has ended."""
    look = physics_requests.newest_measurement(runtime.home, run_id)
    if look is None or not look.is_live:
        runtime.refresh()
        st.rerun()
        return
    known = look.progress
    bar, button = st.columns([5, 1], vertical_alignment="center")
    sentence = words.plain(known.sentence) or "begins"
    bar.progress(
        known.share, text=f"Measuring {words.plain(name)}: {sentence}. This goes on when the page is closed."
    )
    if look.job.stop_file.exists():
        button.caption("stopping …")
    elif button.button("Stop", key="physics.stop"):
        actions.attempt(lambda: runtime.cancel_job(look.job.job_id))
        st.rerun()
