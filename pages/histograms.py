"""Histograms: how scores, losses, weights and gradients are distributed, over the epochs of one run or of several at one epoch."""

import streamlit as st

from dashboard import histogram_view, places, session, widgets
from gan_runtime.store import queries

st.title("Histograms")
store = session.runtime().store
newest = queries.runs(store)
if not newest:
    st.info("No run is stored yet. Start one on the Launch page; its first histograms come after its first epoch.")
    st.page_link(places.LAUNCH, label="Go to Launch", icon=":material/rocket_launch:")
    st.stop()
if "runs" not in st.query_params:
    st.query_params["runs"] = newest[0].run_id
rows = widgets.runs_picker(store, key="histograms.runs")
if not rows:
    st.info("Pick one run above to see its epochs, or several to lay them over each other at one epoch.")
    st.stop()
histogram_view.show(store, rows)
