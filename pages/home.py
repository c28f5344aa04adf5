"""Home: what is training, what waits, what was trained last. Reads, and starts the quick run."""

import streamlit as st

from dashboard import actions
from dashboard.frame import session
from dashboard.home import examples
from dashboard.home import view as home_view
from gan_runtime.store import queries

head = st.columns([3, 1], vertical_alignment="bottom")
head[0].title("GAN training")
runtime = session.runtime()
if head[1].button("Start a quick run", type="primary", icon=":material/play_arrow:", width="stretch"):
    actions.start_preset(runtime, "quick")


@st.fragment(run_every=1.0)
def overview() -> None:
    """Redraws alone each second."""
    rows = queries.runs(runtime.store)
    if not rows:
        home_view.welcome()
        examples.offer(runtime, "home")
        return
    home_view.training_now(runtime, [row for row in rows if row.is_live and row.status != "queued"])
    home_view.waiting(runtime, queries.queue(runtime.store))
    home_view.last_runs(runtime.store, [row for row in rows if not row.is_live][:8])
    examples.offer(runtime, "home", rows)


overview()
