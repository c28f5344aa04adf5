"""What the address of a page keeps of it: the open tab and the chosen run. A link shows what its sender saw, and Back leads there."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st
from streamlit.elements.lib.mutable_tab_container import TabContainer

TAB, RUN = "tab", "run"
CHOSEN_RUN = "address.run"  # of this window: the run whose page was opened last


def open_tab(page: str, titles: Mapping[str, str]) -> tuple[str, TabContainer]:
    """Draws the tabs; returns the name of the open one and its place, the only one to be filled.

    `titles`: name in the address → title. The address decides, also after Back, and a click changes it. An address
    without a tab, or with an unknown one, opens the first.
    """
    key, names = f"{page}.{TAB}", list(titles)
    asked = st.query_params.get(TAB, names[0])
    name = asked if asked in titles else names[0]
    if st.session_state.get(key) != titles[name]:
        st.session_state[key] = titles[name]

    def opened() -> None:
        st.query_params[TAB] = {title: name for name, title in titles.items()}[st.session_state[key]]

    places = st.tabs(list(titles.values()), key=key, on_change=opened)
    return name, places[names.index(name)]


def has_run() -> bool:
    """Whether this window has opened the page of a run, or is about to."""
    return RUN in st.query_params or CHOSEN_RUN in st.session_state
