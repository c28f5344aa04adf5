"""GPU: the compile check of a run by XLA's compiler for GPUs; no GPU is needed."""

import streamlit as st

from dashboard import check_form, widgets
from dashboard.frame import session
from dashboard.gpu import view as gpu_view
from gan_runtime.gpu import check

st.title("GPU check")
st.caption(gpu_view.WHAT_IS_COMPILED)
runtime = session.runtime()
form, plan = check_form.show(
    runtime, gpu_view.GPUS, lambda values, card: check.make(values, card, runtime.home)
)
job = check.newest(runtime.home, plan)
gpu_view.start(runtime, plan, job)
compiled = check.answer(job)
if compiled is not None:
    gpu_view.show(plan, compiled)
widgets.command_line(form.command())
