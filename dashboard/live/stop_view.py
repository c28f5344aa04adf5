"""The one button that ends a run early: what it does to a run in this state, and that it has been pressed."""

from __future__ import annotations

import streamlit as st

from dashboard import change_buttons, words
from gan_runtime.base.errors import GanRuntimeError
from gan_runtime.store.queries import RunRow
from gan_runtime.supervision.runtime import Runtime

STOPPING_HELP = "The trainer ends its step and saves a checkpoint; this takes some seconds."


def button(runtime: Runtime, row: RunRow) -> None:
    """Nothing for a run that has ended."""
    if not row.is_live:
        return
    if runtime.home.run_dir(row.run_id).stop_file.exists():
        st.button(
            "Stopping …", key=f"stopping.{row.run_id}", icon="spinner", disabled=True, help=STOPPING_HELP
        )
        return
    waits = row.status == "queued"
    change_buttons.button(
        "Remove from queue" if waits else "Stop and save",
        key=f"stop.{row.run_id}",
        icon=":material/close:" if waits else ":material/stop_circle:",
        help="It can be resumed later."
        if waits
        else "Saves a checkpoint first, so that the run can be resumed.",
        on_click=_stop,
        args=(runtime, row.run_id),
    )


def _stop(runtime: Runtime, run_id: str) -> None:
    """Before the page is drawn again, so that it shows at once that the press was heard."""
    try:
        runtime.stop(run_id)
    except GanRuntimeError as error:
        st.toast(words.plain(str(error)), icon=":material/error:")
