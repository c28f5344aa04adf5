"""Launch: start a run, a study that asks a question, or all runs of the paper."""

import streamlit as st

from dashboard.frame import places, session
from dashboard.launch import view as launch_view
from dashboard.paper import plan as paper_plan
from dashboard.studies import form as study_form

st.title("Launch")
runtime = session.runtime()
tab, place = places.open_tab(launch_view.PAGE, launch_view.TITLES)
with place:
    if tab == "run":
        launch_view.show(runtime)
    elif tab == "study":
        study_form.show(runtime)
    else:
        paper_plan.show(runtime)
