"""A model of frames fed with its own frames, next to the flow itself: an evaluation drawn from its stored answers."""

import streamlit as st

from dashboard.evaluation import answers, view
from dashboard.frame import session

st.title("Flow")
st.caption(answers.EVALUATIONS["rollout"].summary)
view.page(session.runtime(), "rollout")
