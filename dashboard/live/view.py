"""The parts of the Live page, top to bottom. Every part keeps its place whether or not it has data yet."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard import charts, first_screen, panels, plots, widgets, words, zoom
from dashboard.frame import places
from dashboard.live import details as live_details
from dashboard.live import health_view, next_steps, pace, resume_view, rows, stop_view
from dashboard.panels import Group
from dashboard.samples import kinds, sample_images
from gan_runtime.base.errors import UnknownRunError
from gan_runtime.base.metrics import LOSSES, SCORES
from gan_runtime.catalog import declared
from gan_runtime.records.reasons import WAITS_IN_TURN
from gan_runtime.records.states import CUT_SHORT
from gan_runtime.store import queries
from gan_runtime.store.queries import Progress, RunRow
from gan_runtime.store.store import Store
from gan_runtime.supervision.runtime import Runtime

LOSS_HEIGHT, SMALL_HEIGHT, WORKERS_HEIGHT = 400, 260, 160  # of the charts, as in charts.py
LOSS_POINTS, SCORE_POINTS = 400, 200  # of a number's curve
ACROSS = 3
Made = TypeVar("Made")
NOT_RECORDED = "This run ended before any of it was recorded."
NO_LOSSES = (
    "This version does not know which numbers of this run are losses: all that it has recorded stands below."
)


def current(store: Store, run_id: str) -> RunRow | None:
    """The run as it stands now; None once it was deleted, here or elsewhere."""
    try:
        return queries.run(store, run_id)
    except UnknownRunError:
        return None


def has_results(store: Store, run_id: str) -> bool:
    """Whether an epoch has left something to be seen."""
    return bool(queries.sample_epochs(store, [run_id]))


def gone(run_id: str) -> None:
    """What takes the place of a run that was deleted while its page was open."""
    st.info(f"Run {words.plain(run_id)} was deleted while this page was open.", icon=":material/delete:")
    st.page_link(places.RUNS, label="Go to Runs", icon=":material/table_rows:")


@dataclass(frozen=True)
class Places:
    """Where the parts of the page stand. Each is filled by one of two fragments, so that what changes with each step is redrawn alone."""

    words: DeltaGenerator
    buttons: DeltaGenerator
    steps: DeltaGenerator  # that an ended run suggests
    figures: DeltaGenerator
    curves: DeltaGenerator
    samples: DeltaGenerator
    rest: DeltaGenerator


def places_of_page(run_id: str) -> Places:
    """Made with the page, before its fragments write into them."""
    words_column, buttons = st.columns([2, 1], vertical_alignment="center")
    steps, figures = st.container(), st.container()
    curves, samples = st.columns([2, 1], gap="medium")
    with curves:
        zoom.line(_zoomed(run_id))
    return Places(words_column, buttons, steps, figures, curves, samples, st.container())


def show_newest(runtime: Runtime, row: RunRow, places: Places, first_screen_alone: bool) -> None:
    """What changes with each step: the run in plain words, its figures, and the losses."""
    store = runtime.store
    progress = _shared(store, row, pace.age_s(row.accelerator), queries.progress, row.run_id)
    _words(store, row, progress)
    with places.figures:
        widgets.progress_bar(progress)
        widgets.figures(progress, row, queries.peak_memory(store, row.run_id))
    with places.curves:
        _losses(store, row, first_screen.POINTS if first_screen_alone else LOSS_POINTS)


def show_rest(runtime: Runtime, row: RunRow, places: Places, first_screen_alone: bool) -> None:
    """What can be done with the run, and pictures; and, below the first screen, scores, what is measured of the run, and its log."""
    store = runtime.store
    with places.buttons:
        _buttons(runtime, row)
    if not row.is_live:
        with places.steps, st.container(horizontal=True, vertical_alignment="center"):
            next_steps.show(runtime, row)
    with places.samples:
        kind = kinds.choice(queries.sample_kinds(store, [row.run_id]), [row], f"live.{row.run_id}")
        newest = queries.sample_epochs(store, [row.run_id], kind)
        epoch = widgets.epoch_slider(row.epochs, max(newest, default=1), f"live.{row.run_id}", row.is_live)
        sample_images.show(store, row, epoch, kind)
        widgets.follow_button(f"live.{row.run_id}", row.is_live)
    if first_screen_alone:
        return
    _small_charts(store, row, epoch)
    if row.workers > 1:
        _workers(store, row)
    health_view.show(store, row)
    live_details.show(runtime, row, epoch)


def _zoomed(run_id: str) -> str:
    """The key of what is zoomed on this page: its curves show the same steps."""
    return f"live.{run_id}"


def _shared(store: Store, row: RunRow, age_s: float, make: Callable[..., Made], *what: Hashable) -> Made:
    """What grows with each step, made once for all who look at this run within a part of their pace. Of a run that has ended the page is drawn for
    the last time: nothing on it is older than its end."""
    return store.lately(make, *what, age_s=age_s if row.is_live else 0.0)


def _words(store: Store, row: RunRow, progress: Progress) -> None:
    widgets.state(row.status, f"{_in_words(row, progress)} · {words.age(progress.written_at)}".rstrip(" ·"))
    widgets.local_sgd(row.sync_every_steps)
    if stillness := store.lately(queries.stands_still, row.run_id):
        st.warning(words.plain(stillness), icon=":material/hourglass_disabled:")
    elif words.is_silent(row.status, progress.written_at):
        st.warning(
            f"The trainer has not reported for a while ({words.age(progress.written_at)}). The log below may say why."
        )


def _buttons(runtime: Runtime, row: RunRow) -> None:
    stop_column, resume_column = st.columns(2, vertical_alignment="center")
    with stop_column:
        stop_view.button(runtime, row)
    with resume_column:  # beside it: a second press on Stop must not resume the run
        if row.status in CUT_SHORT:
            resume_view.buttons(runtime, row)


def _in_words(row: RunRow, progress: Progress) -> str:
    if row.status == "running":
        return words.balance(declared.of(row.workload), progress.newest)
    if row.status == "queued":
        if row.reason_code in WAITS_IN_TURN:
            return "Waiting: one run trains on a device at a time. The queue on Home says which."
        return words.capitalized(row.note)
    return words.capitalized(row.note)


def _losses(store: Store, row: RunRow, points: int) -> None:
    zoomed = _zoomed(row.run_id)
    groups = tuple(panels.of_panel(declared.of(row.workload), LOSSES))
    asked = (row.run_id, groups, points, zoom.window(zoomed))
    drawn = _shared(store, row, pace.age_s(row.accelerator), rows.curves, *asked)
    if not groups:
        st.caption(NO_LOSSES)
        return
    if all(table.empty for _, table in drawn):
        _awaited(row, "The loss curves appear here as soon as the first steps are done.", LOSS_HEIGHT)
        return
    with st.container(key="live_losses", height="stretch"):
        for place, (group, table) in enumerate(drawn):
            zoom.live_chart(group, table, f"losses.{place}", zoomed, LOSS_HEIGHT, height="stretch")
    _broken(store, row)


def _broken(store: Store, row: RunRow) -> None:
    """Where the numbers have ended, if one of them became none."""
    asked = store.lately if row.is_live else store.once
    broken = asked(queries.not_finite, row.run_id)
    if not broken.empty:
        first = broken.iloc[0]
        title = declared.of(row.workload).table([first["metric"]])[first["metric"]].title
        st.error(
            f"{words.plain(title)} became {first['value']} at step {first['step']}: the curve ends there."
        )


def _awaited(row: RunRow, sentence: str, height: int) -> None:
    """The place of a chart before its first rows: as high as the chart, so that nothing jumps when they come."""
    if not row.is_live:
        st.caption(NOT_RECORDED)
        return
    with st.container(border=True, height=height, vertical_alignment="center", horizontal_alignment="center"):
        st.caption(sentence, width="content")


def _small_charts(store: Store, row: RunRow, epoch: int) -> None:
    """Scores and how they are spread, where the workload has some, and the time of each epoch; three beside each other."""
    known = declared.of(row.workload)
    parts: list[Callable[[], None]] = [
        partial(_scores, store, row, group, place)
        for place, group in enumerate(panels.of_panel(known, SCORES))
    ]
    parts += [
        partial(_score_histogram, store, row, group, epoch, place)
        for place, group in enumerate(panels.judged(known))
    ]
    parts.append(partial(_epochs, store, row))
    for begin in range(0, len(parts), ACROSS):
        beside = parts[begin : begin + ACROSS]
        for column, part in zip(st.columns(len(beside), gap="medium"), beside, strict=True):
            with column:
                part()


def _scores(store: Store, row: RunRow, group: Group, place: int) -> None:
    zoomed = _zoomed(row.run_id)
    asked = (row.run_id, (group,), SCORE_POINTS, zoom.window(zoomed))
    _, scores = _shared(store, row, pace.rest_age_s(row.accelerator), rows.curves, *asked)[0]
    if scores.empty:
        _awaited(row, f"{group.panel.awaits or group.panel.heading} appear here.", SMALL_HEIGHT)
    else:
        zoom.live_chart(group, scores, f"scores.{place}", zoomed, SMALL_HEIGHT)


def _score_histogram(store: Store, row: RunRow, judged: Group, epoch: int, place: int) -> None:
    histogram = store.once(rows.score_histogram, row.run_id, judged.names, epoch)
    if histogram.empty:
        _awaited(row, "The distribution of the scores appears here after the first epoch.", SMALL_HEIGHT)
    else:
        key = f"score_histogram.{place}.{row.run_id}"
        plots.kept_chart(charts.score_histogram, histogram.arrow, key, judged)


def _epochs(store: Store, row: RunRow) -> None:
    epochs = store.once(rows.epoch_times, row.run_id)
    if epochs.empty:
        _awaited(row, "The time of each epoch appears here after the first one.", SMALL_HEIGHT)
    else:
        plots.kept_chart(charts.epoch_bars, epochs.arrow, f"epochs.{row.run_id}")


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
    plots.chart(charts.worker_bars(times), key=f"workers.{row.run_id}")
