"""Home: current runs, the queue, and the last runs; it also starts the quick run."""

import streamlit as st

from dashboard import actions, home_view, queue_view, run_selection
from dashboard.frame import session
from gan_runtime.store import queries

head = st.columns([3, 1], vertical_alignment="bottom")
head[0].title("GAN training")
runtime = session.runtime()
with head[1]:
    is_pressed = actions.button(
        "Start a quick run", type="primary", icon=":material/play_arrow:", width="stretch"
    )
if is_pressed:
    actions.start_preset(runtime, "quick")


@st.fragment(run_every=1.0)
def overview() -> None:
    """Redraws alone each second."""
    rows = queries.runs(runtime.store)
    if not rows:
        home_view.welcome()
        actions.offer_examples(runtime, "home")
        return
    home_view.training_now(runtime, [row for row in rows if row.is_live and row.status != "queued"])
    queue_view.show(runtime)
    ended = [
        row
        for row in run_selection.pinned_first(run_selection.runs(runtime.store))
        if not row.is_live
    ]
    home_view.last_runs(runtime.store, ended[:8])
    actions.offer_examples(runtime, "home", rows)


overview()
