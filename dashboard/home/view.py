"""The three parts of the Home page."""

from __future__ import annotations

from functools import partial

import streamlit as st

from dashboard import actions, option_words, widgets, words
from dashboard.frame import places
from dashboard.live import stop_view
from dashboard.samples import sample_images
from gan_runtime.runtime.runtime import Runtime
from gan_runtime.store import queries
from gan_runtime.store.queries import RunRow, StudyRow
from gan_runtime.store.store import Store


def welcome() -> None:
    """What a first visitor sees: the three things to do here."""
    st.write(
        "Nothing has been trained here yet. **Start a quick run** trains the paper's DCGAN on handwritten digits, on this machine, in about a minute."
    )
    steps = (
        (
            "1 · Launch",
            "Pick a preset, data, accelerator and precision. Missing hardware can be tried on simulated cores.",
            places.LAUNCH,
            "Go to Launch",
        ),
        (
            "2 · Watch",
            "Losses, scores, epoch times and samples of the running training, redrawn each second.",
            places.LIVE,
            "Go to Live",
        ),
        (
            "3 · Compare",
            "Every run stays in results.duckdb: lay curves and samples of several runs beside each other.",
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
    """A card for each training run: picture, progress, figures, stop."""
    for row in rows:
        progress = queries.progress(runtime.store, row.run_id)
        with st.container(border=True):
            picture, facts = st.columns([1, 4], gap="medium")
            with picture:
                sample_images.show(runtime.store, row, row.epochs, caption=False)
            with facts:
                widgets.state(row.status, f"{row.name} · {settings(row)} · {words.age(progress.written_at)}")
                widgets.progress_bar(progress)
                widgets.figures(progress, row)
                with st.container(horizontal=True, vertical_alignment="center"):
                    st.page_link(
                        places.LIVE,
                        label="Open live",
                        icon=":material/monitoring:",
                        query_params={"run": row.run_id},
                    )
                    stop_view.button(runtime, row)


def waiting(runtime: Runtime, rows: list[RunRow]) -> None:
    """The queue in its order, with buttons to reorder it."""
    if not rows:
        return
    items = queue_items(rows)
    st.header(
        f"Queue ({len(items)})",
        help="One run trains on an accelerator at a time; the others wait here in this order.",
    )
    titles = {study.study_id: study for study in queries.studies(runtime.store)}
    for index, item in enumerate(items):
        run_ids, first = [row.run_id for row in item], item[0]
        with st.container(horizontal=True, vertical_alignment="center"):
            study = titles.get(first.study_id or "")
            widgets.state(
                "queued",
                f"{index + 1}. {_study_line(study, item) if study else f'{first.name} · {settings(first)}'}",
            )
            above = [row.run_id for row in items[index - 1]] if index else []
            if st.button(
                "Move up",
                key=f"up.{first.run_id}",
                icon=":material/arrow_upward:",
                type="tertiary",
                disabled=index == 0,
            ):
                actions.succeeded(partial(runtime.swap_in_queue, above, run_ids))
            if st.button("Remove", key=f"remove.{first.run_id}", icon=":material/close:", type="tertiary"):
                actions.succeeded(partial(runtime.stop_all, run_ids))
            if study:
                st.page_link(places.STUDIES, label="Open study", query_params={"study": study.study_id})


def queue_items(rows: list[RunRow]) -> list[list[RunRow]]:
    """What waits, in its order: runs of their own, and for each study all of its waiting runs as one item."""
    items: dict[str, list[RunRow]] = {}
    for row in rows:
        items.setdefault(row.study_id or row.run_id, []).append(row)
    return list(items.values())


def _study_line(study: StudyRow, waiting: list[RunRow]) -> str:
    return f"Study: {study.title} · {len(waiting)} of its {study.runs} runs wait · next {waiting[0].name}"


def last_runs(store: Store, rows: list[RunRow]) -> None:
    """The newest ended runs, with their last picture."""
    if not rows:
        return
    st.header("Last runs")
    columns = st.columns(4)
    for index, row in enumerate(rows):
        with columns[index % 4].container(border=True):
            sample_images.show(store, row, row.epochs, caption=False)
            widgets.state(row.status, row.name)
            st.caption(f"{words.plain(settings(row))} · {words.plain(row.note)}")
            st.page_link(places.LIVE, label=f"Open {words.plain(row.name)}", query_params={"run": row.run_id})


def settings(row: RunRow) -> str:
    """A run in short: 2 simulated cores · bfloat16 · batch 64."""
    kind = "simulated cores" if row.accelerator == "cpu" else row.accelerator.upper() + "s"
    where = f"{row.replicas} {kind}" if row.replicas > 1 else row.accelerator.upper()
    where = f"{row.workers} workers × {where}" if row.workers > 1 else where
    algorithm = " · local SGD" if row.sync_every_steps > 1 else ""
    return f"{row.dataset} · {where} · {option_words.choice(row.precision)} · batch {row.batch_size_global}{algorithm}"
