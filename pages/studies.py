"""Studies: reports of studies, costs of XLA and precision, and the paper, figure by figure."""

import streamlit as st

from dashboard.frame import places, session
from dashboard.paper import view as paper_view
from dashboard.studies import variants_view
from dashboard.studies import view as study_view

st.title("Studies")
runtime = session.runtime()
tab, place = places.open_tab(study_view.PAGE, study_view.TITLES)
with place:
    if tab == "reports":
        study_view.show(runtime)
    elif tab == "paper":
        paper_view.show(runtime)
    else:
        variants_view.show(runtime, tab)
