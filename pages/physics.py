"""Showers that runs generate next to simulated ones: an evaluation drawn from its stored answers."""

import streamlit as st

from dashboard.evaluation import answers, view
from dashboard.frame import session

st.title("Physics")
st.caption(answers.EVALUATIONS["physics"].summary)
view.page(session.runtime(), "physics")
