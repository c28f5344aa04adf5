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
from gan_runtime.store import queries

st.title("Physics")
st.caption(physics_words.WHAT)
runtime = session.runtime()
store = runtime.store
measured_ids = queries.runs_with_physics(store)
rows = physics_view.runs(runtime, measured_ids)
if not rows:
    st.info("Pick a run above: its showers are put beside real ones.")
    st.stop()
measured = physics_view.measured(rows, measured_ids)
if not measured:
    st.info(physics_words.NOTHING_YET)
    physics_form.measure(runtime, rows, is_first=True)
    st.stop()
figures = st.container()
chosen = physics_view.choose(store, measured)
with figures:
    physics_view.figures(chosen)
curves = physics_view.curve_rows(store, chosen)
physics_view.curves(curves, chosen)
physics_showers.side_by_side(store, chosen)
physics_chosen.show(runtime, chosen)
physics_view.judging_network(curves, chosen)
physics_view.maps(store, curves, chosen)
physics_view.scores(chosen)
physics_view.epochs(chosen)
physics_best.choose(runtime, chosen)
physics_speed.scaling(store, chosen)
st.header("Measure again", anchor=False)
physics_form.measure(runtime, rows, is_first=False)
