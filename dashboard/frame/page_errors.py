"""What a page shows if its code fails: one sentence. Streamlit writes the traceback to the log."""

from __future__ import annotations

import streamlit as st

SENTENCE = (
    "A part of this page could not be drawn. Reload the page. If that does not help, report the"
    " last error in the dashboard's log."
)


def show(_: Exception) -> bool:
    """Replaces Streamlit's red box, where the failing part of the page was."""
    st.error(SENTENCE, icon=":material/error:")
    return True
