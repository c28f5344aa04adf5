"""Samples: the pictures of one or several runs at the same epoch, under one slider, with play."""

import streamlit as st

from dashboard import widgets
from dashboard.frame import session
from dashboard.samples import players

st.title("Samples")
store = session.runtime().store
rows = widgets.newest_or_picked(
    store,
    "samples.runs",
    first="its first pictures come after its first epoch.",
    pick="Pick one or more runs above: their images appear here, all at the same epoch.",
)
players.sample_player(store, rows, key="samples.player")
