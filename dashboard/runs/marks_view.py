"""What a person makes of the ticked runs: tags and a note, pinned or not, hidden or not."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pandas as pd
import streamlit as st

from dashboard import actions
from gan_runtime.commands.runtime import Runtime
from gan_runtime.records.record import MAX_REMARK, MAX_TAGS
from gan_runtime.store import queries


def toggles(runtime: Runtime, chosen: pd.DataFrame) -> None:
    """Pin or unpin, hide or show the runs, whichever would change one of them."""
    ids = list(chosen["run_id"])
    pin, hide = not chosen["pinned"].all(), not chosen["hidden"].all()
    _toggle(
        "Pin" if pin else "Unpin",
        ":material/keep:" if pin else ":material/keep_off:",
        "Pinned runs stand first, and are not deleted.",
        partial(runtime.commands.mark, ids, pinned=pin),
    )
    _toggle(
        "Hide" if hide else "Unhide",
        ":material/visibility_off:" if hide else ":material/visibility:",
        "Hidden runs are left out of lists until you ask for them on this page.",
        partial(runtime.commands.mark, ids, hidden=hide),
    )


def _toggle(label: str, icon: str, what: str, marking: Callable[[], None]) -> None:
    if actions.button(label, icon=icon, help=what) and actions.succeeded(marking):
        st.rerun()


@st.dialog("Tags and note")
def edit(runtime: Runtime, run_id: str) -> None:
    """Of one run."""
    rows = queries.runs(runtime.store)
    row = next((row for row in rows if row.run_id == run_id), None)
    if row is None:
        st.info("This run was deleted meanwhile.")
        return
    known = sorted({tag for one in rows for tag in one.tags})
    with st.form("marks", border=False):
        tags = st.multiselect(
            "Tags",
            known,
            default=row.tags,
            accept_new_options=True,
            max_selections=MAX_TAGS,
            placeholder="Pick or type, then Enter",
            help="Up to 40 letters, digits, '.', '_', '-' and spaces.",
        )
        remark = st.text_area("Note", value=row.remark, max_chars=MAX_REMARK, height=160)
        if actions.form_button("Save", type="primary") and actions.succeeded(
            partial(runtime.commands.mark, [run_id], tags=tags, remark=remark.replace("\r\n", "\n"))
        ):
            st.rerun()
