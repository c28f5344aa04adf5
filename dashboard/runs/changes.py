"""What users do with runs: tags and a note, pinning and hiding; and the trash of deleted runs, with
the days that they stay.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pandas as pd
import streamlit as st

from dashboard import actions, words
from gan_runtime.base import formats
from gan_runtime.commands.runtime import Runtime
from gan_runtime.records.record import MAX_REMARK, MAX_TAGS
from gan_runtime.store import queries
from gan_runtime.supervision import trash
from gan_runtime.supervision.trash import DeletedRun


def toggles(runtime: Runtime, table: pd.DataFrame) -> None:
    """Buttons to pin or unpin, and to hide or unhide the runs, whichever changes some."""
    ids = list(table["run_id"])
    pin, hide = not table["pinned"].all(), not table["hidden"].all()
    _toggle(
        "Pin" if pin else "Unpin",
        ":material/keep:" if pin else ":material/keep_off:",
        "Pinned runs are listed first and cannot be deleted.",
        partial(runtime.commands.mark, ids, pinned=pin),
    )
    _toggle(
        "Hide" if hide else "Unhide",
        ":material/visibility_off:" if hide else ":material/visibility:",
        "Hidden runs appear in no list until you show them on this page.",
        partial(runtime.commands.mark, ids, hidden=hide),
    )


def _toggle(label: str, icon: str, what: str, marking: Callable[[], None]) -> None:
    if actions.button(label, icon=icon, help=what) and actions.succeeded(marking):
        st.rerun()


@st.dialog("Tags and note")
def edit(runtime: Runtime, run_id: str) -> None:
    """The dialog of one run."""
    rows = queries.runs(runtime.store)
    row = next((row for row in rows if row.run_id == run_id), None)
    if row is None:
        st.info("This run has been deleted.")
        return
    all_tags = sorted({tag for row in rows for tag in row.tags})
    with st.form("marks", border=False):
        tags = st.multiselect(
            "Tags",
            all_tags,
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


OPEN = "runs.bin"


def show_trash(runtime: Runtime) -> None:
    """The trash; nothing while it is empty."""
    runs = trash.deleted_runs(runtime.home)
    if not runs:
        return
    total = sum(run.size_bytes or 0 for run in runs)
    with st.expander(
        f"Trash: {formats.quantity(len(runs), 'run')}, {formats.size(total)}",
        icon=":material/delete:",
        key=OPEN,
    ):
        st.caption(f"Deleted runs stay here for {trash.DAYS} days, then their files are removed.")
        for run in runs:
            _row(runtime, run)
        if actions.button(
            "Empty the trash now", icon=":material/delete_forever:", key="runs.bin.empty"
        ):
            _empty(runtime, runs)


def _row(runtime: Runtime, run: DeletedRun) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key=f"runs.bin.{run.key}"):
        st.markdown(
            f"**{words.plain(run.name)}** {_id(run)}  \n:small[{words.plain(trash_line(run))}]",
            width="stretch",
        )
        if actions.button(
            "Restore", icon=":material/restore_from_trash:", key=f"restore.{run.key}"
        ) and (actions.succeeded(partial(runtime.commands.restore, run.key))):
            st.rerun()


def _id(run: DeletedRun) -> str:
    return "" if run.name == run.run_id else f"({words.plain(run.run_id)})"


def trash_line(run: DeletedRun) -> str:
    """A line: when and from where it was deleted, its size, and the days that it stays."""
    when = (
        "deleted"
        if run.deleted_at is None
        else f"deleted on {run.deleted_at:%Y-%m-%d at %H:%M} UTC"
    )
    by = f" from the {run.asker}" if run.asker else ""
    size = "" if run.size_bytes is None else f" · {formats.size(run.size_bytes)}"
    return f"{when}{by}{size} · {days_left(run)}"


def days_left(run: DeletedRun) -> str:
    """How long the run stays in the trash."""
    if run.days_left is None:
        return "stays until you remove it"
    if run.days_left < 1:
        return "removed within a day"
    return f"{formats.quantity(round(run.days_left), 'day')} left"


@st.dialog("Empty the trash?")
def _empty(runtime: Runtime, runs: list[DeletedRun]) -> None:
    named = words.plain(", ".join(run.name for run in runs))
    total = formats.size(sum(run.size_bytes or 0 for run in runs))
    st.write(
        f"{named}: removes curves, samples, checkpoints and logs, {total}, from the disk. This"
        " cannot be undone."
    )
    keys = [run.key for run in runs]
    if actions.button(
        f"Remove {formats.quantity(len(keys), 'run')} for good",
        type="primary",
        icon=":material/delete_forever:",
    ) and actions.succeeded(partial(runtime.commands.remove_for_good, keys)):
        st.rerun()
