"""Studies: a question that starts several runs, how far they are, and what they say."""

import streamlit as st

from dashboard import examples
from dashboard.frame import session
from dashboard.studies import form as study_form
from dashboard.studies import view as study_view
from gan_runtime.store import queries

runtime = session.runtime()
head = st.columns([2, 3], vertical_alignment="bottom")
head[0].title("Studies")
with head[1]:
    study = study_view.picker(runtime.store)
with st.expander("Ask a new question", expanded=study is None, icon=":material/science:"):
    study_form.show(runtime)
if study is None:
    st.info(study_view.why_none(runtime.store))
    examples.offer(runtime, "studies")
    st.stop()
study_id, was_live = study.study_id, study.is_live


@st.fragment(run_every=2.0 if was_live else None)
def panel() -> None:
    """Redraws alone while runs wait or train."""
    now = next((row for row in queries.studies(runtime.store) if row.study_id == study_id), None)
    if now is None or (was_live and not now.is_live):
        st.rerun()
    runs = queries.study_runs(runtime.store, study_id)
    study_view.progress(runtime, now, runs)
    study_view.report(runtime.store, now, runs)


panel()
