"""The pages: their files, and what an address keeps of one: the open tab and the chosen run.

A link shows what its sender saw, and Back leads there. Version 0.2.0 had a page for each view of a
run: its links and bookmarks lead to where the views are now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

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
PHYSICS = _PAGES / "physics.py"
FLOW = _PAGES / "flow.py"
PAGES = (
    HOME,
    LAUNCH,
    DATA,
    RUN,
    RUNS,
    COMPARE,
    STUDIES,
    TPU,
    PHYSICS,
    FLOW,
)


def of_runs(run_ids: Sequence[str], tab: str) -> tuple[Path, dict[str, str]]:
    """Where a tab that runs and comparisons both have shows these runs: the page, and the
    rest of its address.
    """
    if len(run_ids) == 1:
        return RUN, {"run": run_ids[0], "tab": tab}
    return COMPARE, {"runs": ",".join(run_ids), "tab": tab}


TAB_KEY, RUN_KEY = "tab", "run"
CHOSEN_RUN = "address.run"  # of this window: the run whose page was opened last


def open_tab(page: str, titles: Mapping[str, str]) -> tuple[str, TabContainer]:
    """Draws the tabs; returns the name of the open one and its place, the only one to be filled.

    `titles`: name in the address → title. The address decides, also after Back, and a click changes
    it. An address without a tab, or with an unknown one, opens the first.
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


# Name of a page that is no more → the page, and the tab of it, that have its contents.
MOVED = {
    "live": ("run", ""),
    "samples": ("run", "samples"),
    "histograms": ("run", "histograms"),
    "xla": ("studies", "xla"),
    "precision": ("studies", "precision"),
    "paper": ("studies", "paper"),
}
OF_SEVERAL = {"samples", "histograms"}  # tabs of Compare too


def new_address(name: str, query: str) -> str:
    """The address of today, relative to the old one; empty for a page that has not moved.

    `query`: without "?".
    """
    if name not in MOVED:
        return ""
    page, tab = MOVED[name]
    words = dict(parse_qsl(query, keep_blank_values=True))
    if page == "run":
        run_ids = [run_id for run_id in words.pop("runs", "").split(",") if run_id]
        if len(run_ids) > 1 and tab in OF_SEVERAL:
            page, words["runs"] = "compare", ",".join(run_ids)
        elif run_ids:
            words.setdefault("run", run_ids[0])
    if tab:
        words["tab"] = tab
    return f"{page}?{urlencode(words)}" if words else page
