"""TPU: the compile check of a run by the TPU's own compiler; no TPU is needed."""

import streamlit as st

from dashboard import check_form, widgets
from dashboard.frame import session
from dashboard.tpu import view as tpu_view
from dashboard.tpu import words as tpu_words
from gan_runtime.tpu import check
from gan_runtime.tpu import plan as planning

st.title("TPU check")
st.caption(tpu_words.WHAT_IS_COMPILED)
runtime = session.runtime()
form, plan = check_form.show(
    runtime,
    tpu_view.TPUS,
    lambda values, topology: planning.make(values, topology, home=runtime.home),
)
was_running = check.newest_progress(runtime.home, plan).running


@st.fragment(run_every=1.0 if was_running else None)
def panel() -> None:
    """Redraws alone while programs are compiled; each result shows as it comes."""
    progress = check.newest_progress(runtime.home, plan)
    if was_running and not progress.running:
        st.rerun()
    tpu_view.start_or_cancel(runtime, plan, progress)
    tpu_view.show_progress(plan, progress)
    if progress.first is None:
        tpu_view.show_empty(progress)
        return
    figures = st.container()
    if progress.first.compiled:
        overhead_s = tpu_view.predictions(plan, progress)
        tpu_view.step_in_words(progress.first)
        tpu_view.most_expensive(progress.first)
        tpu_view.what_precision_changes(progress.first, progress.answers)
    with figures:
        tpu_view.verdict(plan, progress.first, overhead_s if progress.first.compiled else 0.0)


panel()
tpu_view.accuracy(runtime.store, plan)
st.caption(tpu_words.sources(plan))
widgets.command_line(form.command())
