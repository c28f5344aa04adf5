"""Showers that runs generate next to simulated ones: an evaluation drawn from its stored answers."""

import streamlit as st

from dashboard.domain_pages import EVALUATIONS
from dashboard.evaluation import view
from dashboard.frame import session

st.title("Physics")
st.caption(EVALUATIONS["physics"].summary)
view.page(session.runtime(), "physics")
