"""Samples: the pictures of one or several runs at the same epoch, under one slider, with play."""

import streamlit as st

from dashboard import widgets
from dashboard.frame import session
from dashboard.samples import generate_view, players

st.title("Samples")
runtime = session.runtime()
rows = widgets.newest_or_picked(
    runtime.store,
    "samples.runs",
    first="its first pictures come after its first epoch.",
    pick="Pick one or more runs above: their images appear here, all at the same epoch.",
)
players.sample_player(runtime.store, rows, key="samples.player")
generate_view.show(runtime, rows)
