"""A command of the command line, as text that a click selects whole.

Not `st.code`: that loads a highlighter of 1.6 MB, a fifth of a second of a first view, for one line.
"""

from __future__ import annotations

import html

import streamlit as st

SAME = "The same from the command line"


def show(command: str, told: str = SAME) -> None:
    """The words above it and the command, whatever stands in it."""
    st.caption(f"{told} (a click selects it):")
    st.html(f"<pre class='command'>{html.escape(command)}</pre>")
