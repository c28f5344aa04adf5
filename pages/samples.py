"""Samples: the grids of one or several runs at the same epoch, under one slider, with play."""

import streamlit as st

from dashboard import places, players, session, widgets
from gan_runtime.store import queries

st.title("Samples")
store = session.runtime().store
newest = queries.runs(store)
if not newest:
    st.info("No run is stored yet. Start one on the Launch page; its first grid of 64 images comes after its first epoch.")
    st.page_link(places.LAUNCH, label="Go to Launch", icon=":material/rocket_launch:")
    st.stop()
if "runs" not in st.query_params:
    st.query_params["runs"] = newest[0].run_id
rows = widgets.runs_picker(store, key="samples.runs")
if not rows:
    st.info("Pick one or more runs above: their images appear here, all at the same epoch.")
    st.stop()
players.sample_player(store, rows, key="samples.player")
