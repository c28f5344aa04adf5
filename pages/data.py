"""Data: the data sets for runs, and a form for new ones."""

import streamlit as st

from dashboard.data import form as data_form
from dashboard.data import sets_view
from dashboard.frame import session

st.title("Data sets")
runtime = session.runtime()
sets_view.show_current(runtime)
sets_view.show(runtime)

st.header("Add a data set")
form = data_form.show(runtime)
if form is not None:
    data_form.show_preview(runtime, form)
sets_view.show_past(runtime)
