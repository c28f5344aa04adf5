"""The button that loads the example runs, for whoever wants to see pages full before training anything."""

from __future__ import annotations

import streamlit as st

from dashboard import actions
from gan_runtime import bundles
from gan_runtime.runtime import Runtime


def offer(runtime: Runtime, key: str) -> None:
    """Loads the bundle that comes with the project; nothing where a copy of the project lacks it."""
    if not bundles.EXAMPLES.exists():
        return
    if st.button(
        "Load example runs",
        key=f"examples.{key}",
        icon=":material/download:",
        help="Really trained runs that come with the project: MNIST, batch 64 to 512, both precisions, XLA on and off. "
        "They appear beside your own and can be deleted like these.",
    ):
        with st.spinner("Loading the example runs …"):
            new = actions.attempt(lambda: runtime.load(bundles.EXAMPLES))
        if new is not None:
            st.rerun()
