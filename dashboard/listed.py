"""Which runs and studies a list offers: hidden ones are left out unless a person wants to see them, in this session."""

from __future__ import annotations

from collections.abc import Collection

import streamlit as st

from gan_runtime.store import queries
from gan_runtime.store.queries import RunRow, StudyRow
from gan_runtime.store.store import Store

SHOW_HIDDEN = "listed.hidden"


def runs(store: Store, asked: Collection[str] = ()) -> list[RunRow]:
    """The newest first. What waits or trains, or is `asked` for by its id, is there in any case; so are all, were none left."""
    return offered(queries.runs(store), asked)


def offered(rows: list[RunRow], asked: Collection[str] = ()) -> list[RunRow]:
    """Of some runs, in their order, those that `runs` would give were there no others."""
    if st.session_state.get(SHOW_HIDDEN):
        return rows
    return [row for row in rows if not row.hidden or row.is_live or row.run_id in asked] or rows


def studies(store: Store, asked: str = "") -> list[StudyRow]:
    """The newest first. One whose runs are all hidden is left out, unless it is `asked` for by its id or is not done."""
    rows = queries.studies(store)
    if st.session_state.get(SHOW_HIDDEN):
        return rows
    shown = {row.study_id for row in queries.runs(store) if not row.hidden}
    return [row for row in rows if row.study_id in shown or row.study_id == asked or row.is_live]


def pinned_first(rows: list[RunRow]) -> list[RunRow]:
    """In their order otherwise."""
    return sorted(rows, key=lambda row: not row.pinned)
