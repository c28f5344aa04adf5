"""A model of frames fed with its own frames, next to the flow itself: an evaluation drawn from its stored answers."""

import streamlit as st

from dashboard.domain_pages import EVALUATIONS
from dashboard.evaluation import view
from dashboard.frame import session

st.title("Flow")
st.caption(EVALUATIONS["rollout"].summary)
view.page(session.runtime(), "rollout")
