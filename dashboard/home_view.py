"""The three parts of the Home page."""

from __future__ import annotations

import streamlit as st

from dashboard import run_selection, widgets, words
from dashboard.frame import places
from dashboard.run import buttons
from dashboard.samples import sample_images
from gan_runtime.commands.runtime import Runtime
from gan_runtime.store import queries
from gan_runtime.store.queries import RunRow
from gan_runtime.store.store import LATELY_SECONDS, Store
from gan_runtime.training.verdict import Verdict

LAST_RUNS = "last_runs"  # style.css gives the images in it one height
ACROSS = 4


def welcome() -> None:
    """The three steps that a first visitor sees."""
    st.write(
        "Nothing has been trained here yet. **Start a quick run** trains a small DCGAN on"
        " handwritten digits, on this machine, in about a minute."
    )
    steps = (
        (
            "1 · Launch",
            (
                "Pick a preset, data, accelerator and precision. Without an accelerator, runs train"
                " on simulated cores."
            ),
            places.LAUNCH,
            "Go to Launch",
        ),
        (
            "2 · Watch",
            "Losses, scores, epoch times and samples of the current run, updated every second.",
            places.RUN,
            "Go to the run page",
        ),
        (
            "3 · Compare",
            "Every run is stored in results.duckdb. Compare curves and samples of several runs.",
            places.COMPARE,
            "Go to Compare",
        ),
    )
    for column, (title, text, page, label) in zip(st.columns(3), steps, strict=True):
        with column.container(border=True, height="stretch"):
            st.header(title)
            st.write(text)
            st.page_link(page, label=label, icon=":material/arrow_forward:")


def training_now(runtime: Runtime, rows: list[RunRow]) -> None:
    """A card for each training run: image, progress, figures, stop button."""
    verdicts = run_selection.verdicts(runtime.store, [row.run_id for row in rows], LATELY_SECONDS)
    for row in rows:
        progress = queries.progress(runtime.store, row.run_id)
        with st.container(border=True):
            picture, facts = st.columns([1, 4], gap="medium")
            with picture:
                sample_images.show(runtime.store, row, row.epochs, caption=False)
            with facts:
                widgets.state(
                    row.status,
                    f"{row.name} · {run_selection.settings(row)} ·"
                    f" {words.age(progress.written_at)}",
                    verdicts.get(row.run_id, widgets.NO_VERDICT),
                )
                widgets.progress_bar(progress)
                widgets.figures(progress, row)
                with st.container(horizontal=True, vertical_alignment="center"):
                    st.page_link(
                        places.RUN,
                        label="Open run",
                        icon=":material/monitoring:",
                        query_params={"run": row.run_id},
                    )
                    buttons.stop(runtime, row)


def last_runs(store: Store, rows: list[RunRow]) -> None:
    """The newest ended runs with their last image."""
    if not rows:
        return
    st.header("Last runs")
    verdicts = run_selection.verdicts(store, [row.run_id for row in rows], LATELY_SECONDS)
    with st.container(key=LAST_RUNS):
        # Row by row, so that a phone shows the cards in this order.
        for begin in range(0, len(rows), ACROSS):
            for column, row in zip(st.columns(ACROSS), rows[begin : begin + ACROSS], strict=False):
                with column.container(border=True, height="stretch"):
                    _card(store, row, verdicts.get(row.run_id, widgets.NO_VERDICT))


def _card(store: Store, row: RunRow, verdict: Verdict) -> None:
    sample_images.show(store, row, row.epochs, caption=False)
    widgets.state(row.status, row.name, verdict)
    st.caption(f"{words.plain(run_selection.settings(row))} · {words.plain(row.note)}")
    st.page_link(
        places.RUN, label=f"Open {words.plain(row.name)}", query_params={"run": row.run_id}
    )
