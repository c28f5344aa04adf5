"""The tab Log and events: what the trainer prints, and what has happened to the run."""

from __future__ import annotations

import re

import pandas as pd
import streamlit as st

from dashboard import tables
from gan_runtime.commands.runtime import Runtime
from gan_runtime.store import queries
from gan_runtime.store.queries import RunRow
from gan_runtime.store.store import Store

LOG_LINES, READ_LINES = 60, 600  # shown; read to find them
# Information and warnings in their own formats, sentences without one, and the errors that they print on every machine
# without a GPU or in every run. Any other error stays.
NOISE = re.compile(
    r"^(?:[IW]0000 00:00:|WARNING: All log messages before absl|To enable the following instructions"
    r"|E0000 00:00:.*(?:cuInit|oneDNN|remapper failed|Unable to register)"
    r"|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [IW] (?:tensorflow|external|xla)/"
    r"|(?:INFO|WARNING):tensorflow:)"
)


def show(runtime: Runtime, row: RunRow) -> None:
    """The log above the events."""
    head, switch = st.columns([3, 1], vertical_alignment="bottom")
    head.header("Log")
    with switch:
        everything = st.toggle(
            "All lines",
            key=f"all_lines.{row.run_id}",
            help="With what TensorFlow, XLA and CUDA print at each start.",
        )
    lines = runtime.home.run_dir(row.run_id).log_tail(READ_LINES).splitlines()
    printed = lines if everything else without_noise(lines)
    if printed:
        st.code("\n".join(printed[-LOG_LINES:]), language=None, height=360)
    else:
        st.caption("The trainer has printed nothing yet." if row.is_live else "This run has no log here.")
    st.header("Events")
    tables.show(local_events(runtime.store, row), hide_index=True, key=f"events.{row.run_id}")


def without_noise(lines: list[str]) -> list[str]:
    """A trainer's log without what TensorFlow, XLA and CUDA print at each start."""
    return [line for line in lines if not NOISE.match(line)]


def local_events(store: Store, row: RunRow) -> pd.DataFrame:
    """The events of a run at the viewer's time, oldest first."""
    zone = st.context.timezone or "UTC"
    events = queries.events(store, row.run_id)
    at = pd.to_datetime(events["logged_at"], utc=True).dt.tz_convert(zone).dt.strftime("%Y-%m-%d %H:%M:%S")
    shown = events.assign(logged_at=at)[["logged_at", "level", "kind", "message", "attempt"]]
    return shown.set_axis([f"Time ({zone})", "Level", "Kind", "Message", "Attempt"], axis=1)
