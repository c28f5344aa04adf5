"""Flow: a model of frames fed with its own frames, beside the flow itself; measured by a job and drawn from what it stored."""

import streamlit as st

from dashboard.flow import film_view as flow_film
from dashboard.flow import form as flow_form
from dashboard.flow import training as flow_training
from dashboard.flow import view as flow_view
from dashboard.flow import words as flow_words
from dashboard.frame import session
from gan_runtime.store import queries

st.title("Flow")
st.caption(flow_words.WHAT)
runtime = session.runtime()
store = runtime.store
rows = flow_view.runs(runtime)
if not rows:
    st.info("Pick a run above: its model is fed with its own frames.")
    st.stop()
stored = queries.flows(store, [row.run_id for row in rows])
if not stored:
    st.info(flow_words.NOTHING_YET)
    flow_form.iterate(runtime, rows, is_first=True)
    flow_training.show(runtime, rows)
    st.stop()
found = flow_view.choose(rows, stored)
flow_view.figures(store, found)
flow_film.show(runtime, found.first, flow_view.beat(store, found), next(iter(found.rows)))
flow_view.errors(store, found)
flow_view.wake(store, found)
flow_view.physics(store, found)
flow_view.times(store, found, stored)
flow_training.show(runtime, rows)
st.header("Iterate again", anchor=False)
flow_form.iterate(runtime, rows, is_first=False)
