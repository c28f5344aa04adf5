"""What to do with a run that has ended: train it again with something changed, or lay it beside the run before it."""

from __future__ import annotations

import json

import streamlit as st

from dashboard import actions, listed
from dashboard.frame import places
from dashboard.launch import fields
from dashboard.queue import after_view
from gan_runtime import catalog
from gan_runtime.store.queries import RunRow
from gan_runtime.supervision.runtime import Runtime


def show(runtime: Runtime, row: RunRow) -> None:
    """Two ways to go on. A workload that this version does not have cannot be trained again."""
    if row.workload in catalog.WORKLOADS and st.button(
        "Run again with changes",
        icon=":material/replay:",
        help="Opens Launch with the options of this run, and with what it waited for as long as that has not ended.",
    ):
        fields.fill_again(json.loads(row.spec), preset=row.run_id.rpartition("-")[0])
        waited_for = actions.attempt(lambda: runtime.waited_for(row.run_id))
        after_view.fill(runtime, after_view.LAUNCH, waited_for)
        st.switch_page(places.LAUNCH)
    earlier = previous(listed.runs(runtime.store), row)
    if earlier is not None:
        st.page_link(
            places.COMPARE,
            label="Compare with the previous run",
            icon=":material/stacked_line_chart:",
            query_params={"runs": f"{earlier.run_id},{row.run_id}"},
            width="content",
        )


def previous(rows: list[RunRow], row: RunRow) -> RunRow | None:
    """The newest run of the same workload that was created before. `rows`: newest first."""
    return next(
        (one for one in rows if one.created_at < row.created_at and one.workload == row.workload), None
    )
