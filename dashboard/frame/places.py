"""The pages: their files, and what their addresses hold: the open tab and the selected run.

A link shows what its sender saw, and Back returns there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import streamlit as st
from streamlit.elements.lib.mutable_tab_container import TabContainer

_PAGES = Path(__file__).resolve().parents[2] / "pages"
HOME = _PAGES / "home.py"
LAUNCH = _PAGES / "launch.py"
DATA = _PAGES / "data.py"
RUN = _PAGES / "run.py"
RUNS = _PAGES / "runs.py"
COMPARE = _PAGES / "compare.py"
STUDIES = _PAGES / "studies.py"
TPU = _PAGES / "tpu.py"
GPU = _PAGES / "gpu.py"
STAGE = _PAGES / "stage.py"
PAGES = (
    HOME,
    LAUNCH,
    DATA,
    RUN,
    RUNS,
    COMPARE,
    STUDIES,
    TPU,
    GPU,
    STAGE,
)


def of_runs(run_ids: Sequence[str], tab: str) -> tuple[Path, dict[str, str]]:
    """The page and the query that show a tab of these runs: of the run, or of Compare."""
    if len(run_ids) == 1:
        return RUN, {"run": run_ids[0], "tab": tab}
    return COMPARE, {"runs": ",".join(run_ids), "tab": tab}


TAB_KEY, RUN_KEY = "tab", "run"
CHOSEN_RUN = "address.run"  # the run whose page this window opened last


def open_tab(page: str, titles: Mapping[str, str]) -> tuple[str, TabContainer]:
    """Draws the tabs; returns the name of the open one and its container, the only one to fill.

    `titles`: name in the address → title. The address decides, also after Back, and a click changes
    it. An address without a known tab opens the first.
    """
    key, names = f"{page}.{TAB_KEY}", list(titles)
    tab = st.query_params.get(TAB_KEY, names[0])
    name = tab if tab in titles else names[0]
    if st.session_state.get(key) != titles[name]:
        st.session_state[key] = titles[name]

    def opened() -> None:
        st.query_params[TAB_KEY] = {title: name for name, title in titles.items()}[
            st.session_state[key]
        ]

    tabs = st.tabs(list(titles.values()), key=key, on_change=opened)
    return name, tabs[names.index(name)]


def has_run() -> bool:
    """Whether this window has opened the page of a run, or is about to."""
    return RUN_KEY in st.query_params or CHOSEN_RUN in st.session_state
