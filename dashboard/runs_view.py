"""The Runs page: filters, table with checkboxes, and what can be done with the chosen runs."""

from __future__ import annotations

import json
from functools import partial

import pandas as pd
import streamlit as st

from dashboard import actions, option_words, places, words
from gan_runtime.runtime import Runtime
from gan_runtime.store import queries
from gan_runtime.store.store import Store

COLUMNS = {
    "name": st.column_config.TextColumn("Name", pinned=True),
    "status": st.column_config.TextColumn("State"),
    "done": st.column_config.ProgressColumn("Epochs done", format="percent", min_value=0, max_value=1),
    "algorithm": st.column_config.TextColumn(
        "Algorithm", help="Local SGD: replicas train alone and average their weights now and then."
    ),
    "created_at": st.column_config.DatetimeColumn("Submitted", format="distance"),
    "time": st.column_config.TextColumn("Training", help="Seconds of training alone, over all attempts."),
    "images_per_s": st.column_config.NumberColumn("Images/s", format="%.0f", help="Median over the epochs."),
    "loss_generator": st.column_config.NumberColumn("Loss G", format="%.3f", help="At the last step, in nats."),
    "loss_discriminator": st.column_config.NumberColumn("Loss D", format="%.3f", help="At the last step, in nats."),
    "options": st.column_config.TextColumn(
        "Options changed", width="medium", help="What differs from the defaults, which are the paper's, beside the columns here."
    ),
    "dataset": st.column_config.TextColumn("Dataset"),
    "workload": st.column_config.TextColumn("Workload"),
    "accelerator": st.column_config.TextColumn("On"),
    "replicas": st.column_config.NumberColumn("Replicas"),
    "workers": st.column_config.NumberColumn("Workers"),
    "precision": st.column_config.TextColumn("Precision"),
    "xla": st.column_config.TextColumn("XLA"),
    "batch_size_global": st.column_config.NumberColumn("Global batch"),
    "run_id": st.column_config.TextColumn("Id"),
    "note": st.column_config.TextColumn("Note"),
}

# Options that have a column of their own, or do not change the training.
WITHOUT_MENTION = (
    *("name", "workload", "dataset", "accelerator", "replicas", "workers", "precision", "xla"),
    *("batch_size_global", "epochs", "steps_per_loop"),
)


def filtered(table: pd.DataFrame) -> pd.DataFrame:
    """The rows that fit the search text and the chosen states."""
    search, states = st.columns([2, 3], vertical_alignment="bottom")
    text = search.text_input("Search", placeholder="name, dataset, workload, note …").strip().lower()
    present = sorted(table["status"].unique())
    wanted = states.pills("State", present, selection_mode="multi", label_visibility="collapsed") or present
    haystack = table[["run_id", "name", "dataset", "workload", "precision", "note"]].astype(str).agg(" ".join, axis=1).str.lower()
    return table[table["status"].isin(wanted) & haystack.str.contains(text, regex=False)]


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """Shows the rows, sortable by a click on a column's head; returns the ticked ones."""
    if rows.empty:
        st.info("No run fits this search. Clear the text or the states above.")
        return rows
    shown = rows.assign(
        done=rows["epochs_done"] / rows["epochs"],
        precision=rows["precision"].str.removeprefix("mixed_"),
        algorithm=["local SGD" if steps > 1 else "synchronous" for steps in rows["sync_every_steps"]],
        options=[option_words.run_changes(json.loads(spec), WITHOUT_MENTION) for spec in rows["spec"]],
        time=[words.duration(None if pd.isna(value) else value) for value in rows["seconds"]],
    )
    picked = st.dataframe(
        shown,
        column_order=[name for name in COLUMNS if name != "algorithm" or (rows["sync_every_steps"] > 1).any()],
        column_config=COLUMNS,
        hide_index=True,
        on_select="rerun",
        selection_mode="multi-row",
        key="runs.table",
        placeholder="–",
    )
    return rows.iloc[picked.selection.rows]


def redraw_when_states_change(store: Store, drawn: pd.DataFrame) -> None:
    """Redraws the table when a run starts, ends or appears, and leaves it alone otherwise: ticks stay under the hand."""
    before = dict(zip(drawn["run_id"], drawn["status"], strict=True))

    @st.fragment(run_every=2.0)
    def watch() -> None:
        if {row.run_id: row.status for row in queries.runs(store)} != before:
            st.rerun()

    watch()


def buttons(runtime: Runtime, chosen: pd.DataFrame) -> None:
    """What can be done with the ticked runs."""
    ids = list(chosen["run_id"])
    if not ids:
        st.caption("Tick one run to open, rename or delete it; tick several to compare them.")
        return
    with st.container(horizontal=True):
        if len(ids) > 1 and st.button(f"Compare {len(ids)} runs", type="primary", icon=":material/stacked_line_chart:"):
            st.switch_page(places.COMPARE, query_params={"runs": ",".join(ids)})
        if len(ids) == 1:
            if st.button("Open", type="primary", icon=":material/monitoring:"):
                st.switch_page(places.LIVE, query_params={"run": ids[0]})
            if st.button("Rename", icon=":material/edit:"):
                _rename(runtime, ids[0], str(chosen["name"].iloc[0]))
        if st.button("Samples", icon=":material/grid_view:"):
            st.switch_page(places.SAMPLES, query_params={"runs": ",".join(ids)})
        if st.button("Delete", icon=":material/delete:"):
            _delete(runtime, ids)


@st.dialog("Rename run")
def _rename(runtime: Runtime, run_id: str, name: str) -> None:
    wanted = st.text_input("New name", value=name, max_chars=60)
    if st.button("Rename", type="primary") and actions.succeeded(lambda: runtime.rename(run_id, wanted)):
        st.rerun()


@st.dialog("Delete for good?")
def _delete(runtime: Runtime, ids: list[str]) -> None:
    st.write(f"{', '.join(ids)}: curves, samples, checkpoints and logs are removed from the disk. This cannot be undone.")
    if st.button(f"Delete {len(ids)} run{'s' if len(ids) > 1 else ''}", type="primary", icon=":material/delete:") and all(
        actions.succeeded(partial(runtime.delete, run_id)) for run_id in ids
    ):
        st.rerun()
