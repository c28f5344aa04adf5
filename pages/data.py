"""Data: the data sets that runs can train on, and how your own pictures become one."""

import streamlit as st

from dashboard.data import form as data_form
from dashboard.data import jobs_view, preview, sets_view
from dashboard.frame import session

st.title("Data sets")
runtime = session.runtime()
jobs_view.show(runtime)
sets_view.show(runtime)

st.header("Add your own pictures")
wanted = data_form.ask(runtime)
if wanted is None:
    st.caption(
        "A preview appears here as soon as there are pictures: what they become, how many of each label, and what is left out."
    )
else:
    preview.show(runtime, wanted)
jobs_view.ended(runtime)
