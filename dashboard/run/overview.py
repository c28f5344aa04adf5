"""The tab Overview of a run: its figures, losses, newest images and health.

Each part keeps its place before it has data.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard import (
    chart_panels,
    charts,
    health_charts,
    plots,
    rendering,
    step_charts,
    widgets,
    words,
)
from dashboard.chart_panels import Group
from dashboard.frame import places
from dashboard.run import health_view, record_view
from dashboard.samples import sample_images
from dashboard.tables import Table
from gan_runtime.base import formats
from gan_runtime.base.metrics import LOSSES, SCORES
from gan_runtime.catalog import declarations
from gan_runtime.catalog.evaluations import evaluations
from gan_runtime.commands.runtime import Runtime
from gan_runtime.evaluation import jobs
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store import queries
from gan_runtime.store.queries import RunProgress, RunRow
from gan_runtime.store.store import Store

LOSS_HEIGHT, SMALL_HEIGHT, WORKERS_HEIGHT = 400, 260, 160  # of the charts, equal to their defaults
LOSS_POINTS, SCORE_POINTS = 400, 200  # of a number's curve
ACROSS = 3
Result = TypeVar("Result")
NOT_RECORDED = "This run ended before this was recorded."
NO_LOSSES = (
    "This version does not know which numbers of this run are losses. See all recorded numbers"
    " below."
)
QUALITY_AWAITED = "The measured quality appears here after its first measurement."
BEING_MEASURED = "The quality is being measured, and appears here by itself."
# After the end of a run, until the job that measures it is in the database.
SOON = timedelta(seconds=5)
WAITING = "Curves, images and speed appear here when training starts. This page updates by itself."


@dataclass(frozen=True)
class Parts:
    """The containers of the parts of the tab.

    Two fragments fill them, so that what changes with each step is redrawn alone.
    """

    figures: DeltaGenerator
    curves: DeltaGenerator
    samples: DeltaGenerator
    rest: DeltaGenerator


def parts(run_id: str) -> Parts:
    """The containers, created before the fragments that write into them."""
    figures = st.container()
    with st.container(key="run_images"):  # first on a phone: style.css
        curves, samples = st.columns([2, 1], gap="medium")
    with curves:
        plots.zoom_line(_zoom_key(run_id))
    return Parts(figures, curves, samples, st.container())


def show_waiting(store: Store, row: RunRow) -> None:
    """A waiting run: its place in the queue, and what it will train."""
    items = queries.queue_items(store)
    place = next(
        (at for at, runs in enumerate(items) if row.run_id in {run.run_id for run in runs}), None
    )
    figures = {
        "Place in the queue": "–" if place is None else f"{place + 1} of {len(items)}",
        "Epochs": formats.count(row.epochs),
        "Global batch": formats.count(row.batch_size_global),
        "Devices": formats.count(row.replicas * row.workers),
    }
    with st.container(horizontal=True, horizontal_alignment="left", gap="large"):
        for label, value in figures.items():
            st.metric(label, value, width="content")
    st.info(WAITING, icon=":material/hourglass_top:")
    st.page_link(
        places.HOME, label="Open the queue on Home", icon=":material/format_list_numbered:"
    )
    st.header("What it will train")
    record_view.show_options(row)


def show_newest(store: Store, row: RunRow, progress: RunProgress, parts: Parts) -> None:
    """What changes with each step: the figures and the losses."""
    with parts.figures:
        widgets.progress_bar(progress)
        widgets.figures(progress, row, queries.peak_memory(store, row.run_id))
    with parts.curves:
        losses(store, row, LOSS_HEIGHT, "run_losses")


def show_rest(runtime: Runtime, row: RunRow, parts: Parts) -> None:
    """Images, scores, health, and where the time goes."""
    store = runtime.store
    with parts.samples:
        key = f"run.{row.run_id}"
        kind = sample_images.choice(queries.sample_kinds(store, [row.run_id]), [row], key)
        newest = max(queries.sample_epochs(store, [row.run_id], kind), default=1)
        epoch = widgets.epoch_slider(row.epochs, newest, key)
        sample_images.show(store, row, epoch, kind)
        widgets.follow_button(key, row.is_live)
    with parts.rest:
        _small_charts(runtime, row, epoch)
        if row.workers > 1:
            _workers(store, row)
        health_view.show(store, row)
        _phases_line(store, row)
        _step_profile(store, row)


def shared(
    store: Store, row: RunRow, age_s: float, make: Callable[..., Result], *what: Hashable
) -> Result:
    """A result that grows with each step, computed once for all viewers within their interval.

    For an ended run the page is drawn a last time, with nothing older than the end.
    """
    return store.lately(make, *what, age_s=age_s if row.is_live else 0.0)


def _zoom_key(run_id: str) -> str:
    """The zoom key of this page: its curves show the same steps."""
    return f"run.{run_id}"


def losses(store: Store, row: RunRow, height: int, key: str) -> None:
    """The curves of the losses, at least as high as this many pixels, in a container with this
    key.
    """
    zoom = _zoom_key(row.run_id)
    groups = tuple(chart_panels.panel_groups(declarations.of(row.workload, row.loss), LOSSES))
    arguments = (row.run_id, groups, LOSS_POINTS, plots.zoom_window(zoom))
    curves = shared(store, row, rendering.age_s(row.accelerator), health_view.curves, *arguments)
    if not groups:
        st.caption(NO_LOSSES)
        return
    if all(table.empty for _, table in curves):
        if _not_finite(store, row):
            st.caption("There is no finite loss to draw.")
        else:
            _placeholder(row, "The loss curves appear here after the first steps.", height)
        return
    with st.container(key=key, height="stretch"):
        for place, (group, table) in enumerate(curves):
            plots.live_chart(group, table, f"losses.{place}", zoom, height, height="stretch")
    _not_finite(store, row)


def _not_finite(store: Store, row: RunRow) -> bool:
    """An error where a number became infinite or NaN; returns whether one did."""
    ask = store.lately if row.is_live else store.once
    broken = ask(queries.not_finite, row.run_id)
    if not broken.empty:
        first = broken.iloc[0]
        title = declarations.of(row.workload).table([first["metric"]])[first["metric"]].title
        st.error(
            f"{words.plain(title)} became {first['value']} at step {first['step']}: the curve ends"
            " there."
        )
    return not broken.empty


def _placeholder(row: RunRow, sentence: str, height: int) -> None:
    """A placeholder as high as the chart, before its first rows, so that nothing jumps."""
    if row.is_live:
        _reserved(sentence, height)
    else:
        st.caption(NOT_RECORDED)


def _reserved(sentence: str, height: int) -> None:
    with st.container(
        border=True, height=height, vertical_alignment="center", horizontal_alignment="center"
    ):
        st.caption(sentence, width="content")


def _small_charts(runtime: Runtime, row: RunRow, epoch: int) -> None:
    """Quality, scores and their histograms, if the workload has some, and the time of each epoch;
    two or three side by side.
    """
    store = runtime.store
    declaration = declarations.of(row.workload)
    quality = shared(
        store, row, rendering.rest_age_s(row.accelerator), health_view.quality, row.run_id
    )
    parts: list[Callable[[], None]] = []
    if not quality.empty or awaits_quality(runtime, row):
        parts.append(partial(_quality, runtime, row, quality))
    parts += [
        partial(_scores, store, row, group, place)
        for place, group in enumerate(chart_panels.panel_groups(declaration, SCORES))
    ]
    parts += [
        partial(_score_histogram, store, row, group, epoch, place)
        for place, group in enumerate(chart_panels.score_histograms(declaration))
    ]
    parts.append(partial(_epochs, store, row))
    across = 2 if len(parts) == 4 else ACROSS
    for begin in range(0, len(parts), across):
        row_parts = parts[begin : begin + across]
        for column, part in zip(st.columns(len(row_parts), gap="medium"), row_parts, strict=True):
            with column:
                part()


def awaits_quality(runtime: Runtime, row: RunRow) -> bool:
    """Whether a job measures the quality of a run, or will do so while it trains or at its end."""
    store, ended_at = runtime.store, row.finished_at
    if _measuring(store, row):
        return True
    has_just_ended = ended_at is not None and datetime.now(UTC) - ended_at < SOON
    run = RunDir(runtime.home.runs / row.run_id)
    if not row.is_live and not (has_just_ended and run.has_checkpoint):
        return False
    age_s = rendering.rest_age_s(row.accelerator)
    return shared(store, row, age_s, health_view.is_measured_while_training, runtime.home, run)


def _measuring(store: Store, row: RunRow) -> str:
    """The evaluation that measures the quality of a run now; "" if none does."""
    names = (
        name
        for name, declared in evaluations().items()
        if any(metric.role == "measured_quality" for metric in declared.scores)
        and queries.is_being_evaluated(store, row.run_id, name)
    )
    return next(names, "")


def _measurement(runtime: Runtime, row: RunRow) -> str:
    """What the job that measures the quality does now, in a sentence; "" without a job."""
    name = _measuring(runtime.store, row)
    snapshot = jobs.newest_request(runtime.home, row.run_id, name) if name else None
    if snapshot is None or not snapshot.is_live:
        return ""
    done = formats.percent(snapshot.progress.share)
    return f"Measuring the quality, {done} done: {widgets.job_sentence(snapshot)}"


def _quality(runtime: Runtime, row: RunRow, quality: Table) -> None:
    store, measurement = runtime.store, _measurement(runtime, row)
    if quality.empty:
        awaited = QUALITY_AWAITED if row.is_live else BEING_MEASURED
        _reserved(f"{measurement}. {awaited}" if measurement else awaited, SMALL_HEIGHT)
        return
    name = str(quality.frame["metric"].iloc[0])
    metric = declarations.of(row.workload).table([name])[name]
    log = health_view.is_log(quality.frame)
    key = f"quality.{row.run_id}.{log}"
    plots.cached_chart(health_charts.quality_curve, quality.arrow, key, metric, log)
    if measurement:
        st.caption(f"{measurement}.")
    age_s = rendering.rest_age_s(row.accelerator)
    if caution := shared(store, row, age_s, health_view.cautions, row.run_id):
        st.caption(words.plain(caution))


def _scores(store: Store, row: RunRow, group: Group, place: int) -> None:
    zoom = _zoom_key(row.run_id)
    arguments = (row.run_id, (group,), SCORE_POINTS, plots.zoom_window(zoom))
    _, scores = shared(
        store, row, rendering.rest_age_s(row.accelerator), health_view.curves, *arguments
    )[0]
    if scores.empty:
        _placeholder(row, f"{group.panel.awaits or group.panel.heading} appear here.", SMALL_HEIGHT)
    else:
        plots.live_chart(group, scores, f"scores.{place}", zoom, SMALL_HEIGHT)


def _score_histogram(store: Store, row: RunRow, group: Group, epoch: int, place: int) -> None:
    histogram = store.once(health_view.score_histogram, row.run_id, group.names, epoch)
    if histogram.empty:
        _placeholder(
            row, "The distribution of the scores appears here after the first epoch.", SMALL_HEIGHT
        )
    else:
        key = f"score_histogram.{place}.{row.run_id}"
        plots.cached_chart(charts.score_histogram, histogram.arrow, key, group)
        shown = int(histogram.frame["epoch"].iloc[0])
        if shown < epoch:
            st.caption(f"Not stored at epoch {epoch}, shown at epoch {shown}.")


def _epochs(store: Store, row: RunRow) -> None:
    epochs = store.once(health_view.epoch_times, row.run_id)
    if epochs.empty:
        _placeholder(row, "The time of each epoch appears here after the first one.", SMALL_HEIGHT)
    else:
        plots.cached_chart(step_charts.epoch_bars, epochs.arrow, f"epochs.{row.run_id}")


def _workers(store: Store, row: RunRow) -> None:
    """Compute and waiting times, for runs of several workers."""
    if row.engine == "jax":
        st.caption(
            "JAX does not report how long each worker computes and waits: workers exchange"
            " inside one compiled program."
        )
        return
    times = queries.worker_times(store, row.run_id)
    if times.empty:
        _placeholder(
            row,
            "How long each worker computes and waits appears here after the first calls.",
            WORKERS_HEIGHT,
        )
        return
    st.caption(words.waiting(list(times["compute_s"]), float(times["wait_share"].max())))
    plots.chart(step_charts.worker_bars(times), key=f"workers.{row.run_id}")


def _phases_line(store: Store, row: RunRow) -> None:
    phases = queries.phases(store, row.run_id)
    names = {
        "build": "load and build",
        "trace": "trace",
        "compile": "compile",
        "steady_step": "steady step",
        "probe": "probes",
    }
    parts = [
        f"{label} {formats.duration(phases[name])}"
        for name, label in names.items()
        if name in phases
    ]
    if "step_p95" in phases:
        between = (
            f"{formats.duration(phases['step_p05'])} to {formats.duration(phases['step_p95'])}"
        )
        parts.append(f"nine of ten steps {between}, slowest {formats.duration(phases['step_max'])}")
    if parts:
        st.caption(
            " · ".join(parts).capitalize(),
            help=(
                "Compile: time of the first step beyond a steady step. Probes: samples and"
                " histograms of all epochs."
            ),
        )


def _step_profile(store: Store, row: RunRow) -> None:
    if row.engine == "jax":
        return  # it records no profiles
    profile = queries.profile(store, row.run_id)
    if profile.empty:
        st.caption("Set 'Profile steps' on Launch to see where a step's time goes.")
        return
    declaration = declarations.of(row.workload)
    names = [*(network.name for network in declaration.networks), *filter(None, profile["network"])]
    titles = {name: declaration.network(name).title for name in names}
    phases = sorted(filter(None, profile["phase"].unique()))
    draw = partial(step_charts.by_network, titles=titles)
    if len(phases) > 1:
        draw = partial(step_charts.by_phase, phases=phases)
    plots.steady_chart(draw, profile, f"profile.{row.run_id}")
    st.caption(
        f"{step_charts.totals(profile)}. Measured once, over {profile['steps'].iloc[0]} training"
        " steps that count in no other time. They are missing from the bar of their epoch.",
        help=(
            "Each moment is divided among the operations that compute then. Exchange and input"
            " count only when nothing computes. A network's row holds its own layers. Where the"
            " gradient of one network passes through another, that part counts for the other."
        ),
    )
