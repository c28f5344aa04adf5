"""What this host offers, for pages that must not wait for it: they draw without it, and again as soon as it is known."""

from __future__ import annotations

import streamlit as st

from dashboard import actions
from gan_runtime.commands.runtime import Runtime
from gan_runtime.hardware.hosts import Host

PATIENCE_S = 0.1  # so that a page whose answer is a moment away is drawn once and not twice
LOOK_AGAIN_S = 0.5


def known(runtime: Runtime) -> Host | None:
    """The host. None while it is being looked at, of which the page then tells, or after a sentence on why that failed."""
    if runtime.host_look.has_ended(PATIENCE_S):
        return actions.attempt(runtime.host)
    _redraw_when_known(runtime)
    return None


@st.fragment(run_every=LOOK_AGAIN_S)
def _redraw_when_known(runtime: Runtime) -> None:
    if runtime.host_look.has_ended(0.0):
        st.rerun()
    st.caption(":material/hourglass: Detecting hardware …")
