"""Physics: showers that runs generate beside real ones, measured by a job and drawn from what it stored."""

import streamlit as st

from dashboard.frame import session
from dashboard.physics import best as physics_best
from dashboard.physics import chosen as physics_chosen
from dashboard.physics import form as physics_form
from dashboard.physics import showers as physics_showers
from dashboard.physics import speed_view as physics_speed
from dashboard.physics import view as physics_view
from dashboard.physics import words as physics_words

st.title("Physics")
st.caption(physics_words.WHAT)
runtime = session.runtime()
store = runtime.store
rows = physics_view.runs(runtime)
if not rows:
    st.info("Pick a run above: its showers are put beside real ones.")
    st.stop()
measured = physics_view.measured(store, rows)
if not measured:
    st.info(physics_words.NOTHING_YET)
    physics_form.measure(runtime, rows, is_first=True)
    st.stop()
figures = st.container()
chosen = physics_view.choose(store, measured)
with figures:
    physics_view.figures(store, chosen)
physics_view.curves(store, chosen)
physics_showers.side_by_side(store, chosen)
physics_chosen.show(runtime, chosen)
physics_view.judging_network(store, chosen)
physics_view.maps(store, chosen)
physics_view.scores(store, chosen)
physics_view.epochs(store, chosen)
physics_best.choose(runtime, chosen)
physics_speed.scaling(store, chosen)
st.header("Measure again", anchor=False)
physics_form.measure(runtime, rows, is_first=False)
