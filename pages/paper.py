"""Paper: the figures of the paper this project rebuilds, each drawn from stored runs beside what the paper says."""

import streamlit as st

from dashboard import examples, words
from dashboard.frame import session
from dashboard.paper import devices as paper_devices
from dashboard.paper import plan as paper_plan
from dashboard.paper import view as paper_view
from dashboard.studies import words as study_words
from gan_runtime.studies import references
from gan_runtime.studies.statistics import LEVEL

runtime = session.runtime()
store = runtime.store
st.title("The paper, figure by figure")
st.caption(
    f"Ravikumar and Sriraman 2023: a DCGAN on MNIST, trained data-parallel on the {references.PAPER_REPLICAS} cores of a "
    f"{references.PAPER_MACHINE} with bfloat16 and XLA, {references.PAPER_EPOCHS} epochs, batch {references.PAPER_BATCHES[0]} to "
    f"{references.PAPER_BATCHES[-1]}. Below, each sentence of its text about a figure is quoted and put to the runs that are "
    "stored here; nothing is read from its pictures. Only runs with the paper's data, and at least as many epochs and repeats, are judged; "
    f"others are shown. Intervals in brackets are of ratios, those of a study together at {words.share(LEVEL)}. {study_words.UNCORRECTED} {study_words.CUT_OFF}"
)
paper_plan.show(runtime)
picked = paper_view.pick_studies(store)
if picked.batches is None:
    st.info("No batch-size study is stored here yet. Reproduce the paper above, or look at the example runs.")
    examples.offer(runtime, "paper")
else:
    paper_view.batch_figures(store, picked.batches)
paper_view.rate_figure(store, picked.schedule)
if picked.batches is not None:
    paper_view.optimization_figure(picked.batches)
paper_view.descent_figure(runtime, picked.batches)
paper_view.xla_figure(store, picked.compiled)
paper_devices.show(store, picked.devices)
