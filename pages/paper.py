"""Paper: the figures of the paper this project rebuilds, each drawn from stored runs beside what the paper says."""

import streamlit as st

from dashboard import examples, paper_view, session

runtime = session.runtime()
head = st.columns([3, 1], vertical_alignment="bottom")
head[0].title("The paper, figure by figure")
with head[1]:
    paper_view.reproduce(runtime)
st.caption(
    "Ravikumar and Sriraman 2023: a DCGAN on MNIST, trained data-parallel on the eight cores of a TPU v3 with bfloat16 and XLA, 30 "
    "epochs, batch 64 to 512. Below, each figure's question is put to the runs that are stored here."
)
batches, compiled = paper_view.pick_studies(runtime.store)
if batches is None:
    st.info("No batch-size study is stored here yet. Reproduce the paper with the button above, or look at the example runs.")
    examples.offer(runtime, "paper")
else:
    paper_view.batch_figures(runtime.store, batches)
paper_view.descent_figure(runtime)
paper_view.xla_figure(runtime.store, compiled)
paper_view.devices(runtime.store)
