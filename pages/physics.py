"""Showers that runs generate next to simulated ones: an evaluation drawn from its stored answers."""

import streamlit as st

from dashboard.evaluation import view
from dashboard.frame import session
from gan_runtime.evaluation.catalog import evaluations

st.title("Physics")
st.caption(evaluations()["physics"].summary)
view.page(session.runtime(), "physics")
