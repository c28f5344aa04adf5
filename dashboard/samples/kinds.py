"""The kinds of pictures that runs make: what they are called, and which one is looked at."""

from __future__ import annotations

import streamlit as st

from dashboard import words
from gan_runtime import catalog
from gan_runtime.store.queries import RunRow


def title(kind: str, rows: list[RunRow]) -> str:
    """What the workload of the first of the runs that has this kind calls it; of a kind that no workload has, its name."""
    entries = [catalog.WORKLOADS[row.workload] for row in rows if row.workload in catalog.WORKLOADS]
    titles = (picture.title for entry in entries for picture in entry.pictures if picture.name == kind)
    return next(titles, kind.replace("_", " ").capitalize())


def choice(kinds: list[str], rows: list[RunRow], key: str) -> str:
    """One of the kinds, picked above the slider. Nothing is drawn where there is no choice; "" where there is no kind."""
    if len(kinds) < 2:
        return kinds[0] if kinds else ""
    if st.session_state.get(f"{key}.kind") not in kinds:
        st.session_state[f"{key}.kind"] = kinds[0]
    return str(
        st.segmented_control(
            "Pictures",
            kinds,
            format_func=lambda kind: words.plain(title(kind, rows)),
            key=f"{key}.kind",
            required=True,
            label_visibility="collapsed",
            wrap=True,  # in a column Streamlit would let the last ones scroll out of sight
        )
    )
