"""XLA: what each setting costs to start and to train, when that is paid back, and whether the losses stay the same."""

import streamlit as st

from dashboard import session, variants_view

st.title("XLA")
runtime = session.runtime()
chosen = variants_view.pick_set(runtime.store, "xla")
if chosen is None:
    variants_view.how_to_start(runtime, "xla")
    st.stop()

variants_view.pay_back(runtime.store, chosen)
variants_view.table(runtime.store, chosen)
variants_view.kernels(runtime.store, chosen)
variants_view.work(runtime.store, chosen)
variants_view.losses(runtime.store, chosen)
