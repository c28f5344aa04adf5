"""Histograms: how scores, losses, weights and gradients are distributed, over the epochs of one run or of several at one epoch."""

import streamlit as st

from dashboard import widgets
from dashboard.frame import session
from dashboard.histograms import view as histogram_view

st.title("Histograms")
store = session.runtime().store
rows = widgets.newest_or_picked(
    store,
    "histograms.runs",
    first="its first histograms come after its first epoch.",
    pick="Pick one run above to see its epochs, or several to lay them over each other at one epoch.",
)
histogram_view.show(store, rows)
