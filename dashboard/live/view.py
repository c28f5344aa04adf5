"""The parts of the Live page, top to bottom. Every part keeps its place whether or not it has data yet."""

from __future__ import annotations

import streamlit as st

from dashboard import charts, widgets, words, zoom
from dashboard.frame import places
from dashboard.live import details as live_details
from dashboard.live import health_view, next_steps, resume_view, stop_view
from dashboard.metric_words import METRICS
from dashboard.samples import sample_images
from gan_runtime.errors import UnknownRunError
from gan_runtime.runtime.runtime import Runtime
from gan_runtime.store import queries
from gan_runtime.store.queries import Progress, RunRow
from gan_runtime.store.store import Store

LOSS_HEIGHT, SMALL_HEIGHT, WORKERS_HEIGHT = 400, 260, 160  # of the charts, as in charts.py
NEVER_BEGAN = "This run ended before its first step."


def current(store: Store, run_id: str) -> RunRow | None:
    """The run as it stands now; None once it was deleted, here or elsewhere."""
    try:
        return queries.run(store, run_id)
    except UnknownRunError:
        return None


def gone(run_id: str) -> None:
    """What takes the place of a run that was deleted while its page was open."""
    st.info(f"Run {words.plain(run_id)} was deleted while this page was open.", icon=":material/delete:")
    st.page_link(places.RUNS, label="Go to Runs", icon=":material/table_rows:")


def show(runtime: Runtime, row: RunRow) -> None:
    """One run in plain words, curves, histograms, samples, log."""
    store = runtime.store
    progress = queries.progress(store, row.run_id)
    _status_line(runtime, row, progress)
    widgets.progress_bar(progress)
    widgets.figures(progress, row, queries.peak_memory(store, row.run_id))
    curves, samples = st.columns([2, 1], gap="medium")
    with samples:
        newest = queries.sample_epochs(store, [row.run_id])
        epoch = widgets.epoch_slider(row.epochs, max(newest, default=1), f"live.{row.run_id}", row.is_live)
        sample_images.show(store, row, epoch)
        widgets.follow_button(f"live.{row.run_id}", row.is_live)
    with curves:
        _losses(store, row)
    _small_charts(store, row, epoch)
    if row.workers > 1:
        _workers(store, row)
    health_view.show(store, row)
    live_details.show(runtime, row, epoch)


def _status_line(runtime: Runtime, row: RunRow, progress: Progress) -> None:
    words_column, stop_column, resume_column = st.columns([4, 1, 1], vertical_alignment="center")
    with words_column:
        widgets.state(
            row.status, f"{_in_words(row, progress)} · {words.age(progress.written_at)}".rstrip(" ·")
        )
        widgets.local_sgd(row.sync_every_steps)
        if words.is_silent(row.status, progress.written_at):
            st.warning(
                f"The trainer has not reported for a while ({words.age(progress.written_at)}). The log below may say why."
            )
    with stop_column:
        stop_view.button(runtime, row)
    with resume_column:  # beside it: a second press on Stop must not resume the run
        if row.status in ("stopped", "failed", "lost"):
            resume_view.buttons(runtime, row)
    if not row.is_live:
        with st.container(horizontal=True, vertical_alignment="center"):
            next_steps.show(runtime.store, row)


def _in_words(row: RunRow, progress: Progress) -> str:
    if row.status == "running":
        return words.balance(progress.newest.get("d_real"), progress.newest.get("d_fake"))
    if row.status == "queued":
        return "Waiting: one run trains on an accelerator at a time."
    return row.note[:1].upper() + row.note[1:]


def _losses(store: Store, row: RunRow) -> None:
    zoomed = f"live.{row.run_id}"
    losses = queries.curves(store, [row.run_id], queries.LOSSES, window=zoom.window(zoomed))
    zoom.line(zoomed)
    if losses.empty:
        _awaited(row, "The loss curves appear here as soon as the first steps are done.", LOSS_HEIGHT)
        return
    zoom.live_chart(charts.loss_curves, losses, "losses", zoomed, height="stretch")
    broken = queries.not_finite(store, row.run_id)
    if not broken.empty:
        first = broken.iloc[0]
        st.error(
            f"{METRICS[first['metric']].title} became {first['value']} at step {first['step']}: the curve ends there."
        )


def _awaited(row: RunRow, sentence: str, height: int) -> None:
    """The place of a chart before its first rows: as high as the chart, so that nothing jumps when they come."""
    if not row.is_live:
        st.caption(NEVER_BEGAN)
        return
    with st.container(border=True, height=height, vertical_alignment="center", horizontal_alignment="center"):
        st.caption(sentence, width="content")


def _small_charts(store: Store, row: RunRow, epoch: int) -> None:
    left, middle, right = st.columns(3, gap="medium")
    zoomed = f"live.{row.run_id}"
    scores = queries.curves(store, [row.run_id], queries.SCORES, max_points=200, window=zoom.window(zoomed))
    histogram = queries.histogram(store, row.run_id, ("score/real", "score/fake"), epoch)
    epochs = queries.epoch_times(store, [row.run_id])
    with left:
        if scores.empty:
            _awaited(row, "D's mean scores of real and generated images appear here.", SMALL_HEIGHT)
        else:
            zoom.live_chart(charts.score_curves, scores, "scores", zoomed)
    with middle:
        if histogram.empty:
            _awaited(row, "The distribution of D's scores appears here after the first epoch.", SMALL_HEIGHT)
        else:
            widgets.steady_chart(charts.score_histogram, histogram, f"score_histogram.{row.run_id}")
    with right:
        if epochs.empty:
            _awaited(row, "The time of each epoch appears here after the first one.", SMALL_HEIGHT)
        else:
            widgets.steady_chart(charts.epoch_bars, epochs, f"epochs.{row.run_id}")


def _workers(store: Store, row: RunRow) -> None:
    """Only runs of several workers have someone to wait for."""
    if row.engine == "jax":
        st.caption(
            "How long each worker computes and waits is not known with JAX: they exchange inside one compiled program."
        )
        return
    times = queries.worker_times(store, row.run_id)
    if times.empty:
        _awaited(
            row, "How long each worker computes and waits appears here after the first calls.", WORKERS_HEIGHT
        )
        return
    st.caption(words.waiting(list(times["compute_s"]), float(times["wait_share"].max())))
    widgets.chart(charts.worker_bars(times), key=f"workers.{row.run_id}")
