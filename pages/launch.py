"""Launch: pick a preset, change what you like, see what it will take, start it."""

import streamlit as st

from dashboard import actions
from dashboard.frame import host_view, session
from dashboard.launch import form as launch_form
from dashboard.launch import view as launch_view
from dashboard.queue import after_view, devices_view

st.title("Launch a run")
runtime = session.runtime()
form, summary = st.columns([2, 1], gap="large")

with form:
    preset = launch_form.pick_preset()
    filled = launch_form.read(runtime.home)

with summary:
    host = host_view.known(runtime)

with form:
    launch_form.show(preset, host, runtime.host_look.again, filled)

with summary:
    spec = filled.spec
    if spec is None:
        launch_view.what_is_wrong(filled.problems)
    if spec is None or host is None:
        st.stop()
    admission = launch_view.what_it_takes(runtime, spec, host, preset)
    waits = launch_view.accelerator_is_busy(runtime.store, spec, admission)
    devices_view.taken(runtime)
    after = after_view.choice(runtime, after_view.LAUNCH)
    if launch_view.start_button("Add to the queue" if waits or after else "Start run"):
        actions.start(runtime, spec, preset, after)
