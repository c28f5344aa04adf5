"""A model of frames fed with its own frames, next to the flow itself: an evaluation drawn from its stored answers."""

import streamlit as st

from dashboard.evaluation import view
from dashboard.frame import session
from gan_runtime.evaluation.catalog import evaluations

st.title("Flow")
st.caption(evaluations()["rollout"].summary)
view.page(session.runtime(), "rollout")
