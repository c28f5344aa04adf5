"""The parts of the Live page, top to bottom. Every part keeps its place whether or not it has data yet."""

from __future__ import annotations

from functools import partial

import altair as alt
import streamlit as st
from streamlit.elements.lib.mutable_expander_container import ExpanderContainer

from dashboard import charts, health_view, home_view, resume_view, stop_view, widgets, words
from gan_runtime.runtime import Runtime
from gan_runtime.store import queries
from gan_runtime.store.queries import Progress, RunRow
from gan_runtime.store.store import Store

NETWORKS = ("generator", "discriminator")


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
        widgets.sample_grid(store, row, epoch)
        widgets.follow_button(f"live.{row.run_id}", row.is_live)
    with curves:
        _losses(store, row)
    _small_charts(store, row, epoch)
    if row.workers > 1:
        _workers(store, row)
    health_view.show(store, row)
    _details(runtime, row, epoch)


def _status_line(runtime: Runtime, row: RunRow, progress: Progress) -> None:
    words_column, stop_column, resume_column = st.columns([4, 1, 1], vertical_alignment="center")
    with words_column:
        widgets.state(row.status, f"{_in_words(row, progress)} · {words.age(progress.written_at)}".rstrip(" ·"))
        widgets.local_sgd(row.sync_every_steps)
        if words.is_silent(row.status, progress.written_at):
            st.warning(f"The trainer has not reported for a while ({words.age(progress.written_at)}). The log below may say why.")
    with stop_column:
        stop_view.button(runtime, row)
    with resume_column:  # beside it: a second press on Stop must not resume the run
        if row.status in ("stopped", "failed", "lost"):
            resume_view.buttons(runtime, row)


def _in_words(row: RunRow, progress: Progress) -> str:
    if row.status == "running":
        return words.balance(progress.newest.get("d_real"), progress.newest.get("d_fake"))
    if row.status == "queued":
        return "Waiting: one run trains on an accelerator at a time."
    return row.note[:1].upper() + row.note[1:]


def _losses(store: Store, row: RunRow) -> None:
    losses = queries.curves(store, [row.run_id], queries.LOSSES)
    if losses.empty:
        st.info(_nothing_yet(row, "The loss curves appear here as soon as the first steps are done."))
        return
    _zoomable(charts.loss_curves(losses, height=400), f"losses.{row.run_id}")
    broken = queries.not_finite(store, row.run_id)
    if not broken.empty:
        st.error(
            f"{broken['metric'].iloc[0]} became {broken['value'].iloc[0]} at step {broken['step'].iloc[0]}: the curve ends there."
        )


def _zoomable(chart: alt.LayerChart, key: str) -> None:
    """Curves that grow while a person looks into them. Streamlit 1.67 ends a zoom with new rows unless it listens to it."""
    st.altair_chart(chart, key=key, on_select="rerun", selection_mode="zoom")


def _nothing_yet(row: RunRow, sentence: str) -> str:
    return sentence if row.is_live else "This run ended before its first step."


def _small_charts(store: Store, row: RunRow, epoch: int) -> None:
    left, middle, right = st.columns(3, gap="medium")
    scores = queries.curves(store, [row.run_id], queries.SCORES, max_points=200)
    histogram = queries.histogram(store, row.run_id, ("score/real", "score/fake"), epoch)
    epochs = queries.epoch_times(store, [row.run_id])
    with left:
        if scores.empty:
            st.caption(_nothing_yet(row, "D's mean scores of real and generated images appear here."))
        else:
            _zoomable(charts.score_curves(scores), f"scores.{row.run_id}")
    with middle:
        if histogram.empty:
            st.caption("The distribution of D's scores appears here after the first epoch.")
        else:
            widgets.steady_chart(charts.score_histogram, histogram, f"score_histogram.{row.run_id}")
    with right:
        if epochs.empty:
            st.caption("The time of each epoch appears here after the first one.")
        else:
            widgets.steady_chart(charts.epoch_bars, epochs, f"epochs.{row.run_id}")


def _workers(store: Store, row: RunRow) -> None:
    """Only runs of several workers have someone to wait for."""
    if row.engine == "jax":
        st.caption("How long each worker computes and waits is not known with JAX: they exchange inside one compiled program.")
        return
    times = queries.worker_times(store, row.run_id)
    if times.empty:
        st.caption(_nothing_yet(row, "How long each worker computes and waits appears here after the first calls."))
        return
    st.caption(words.waiting(list(times["compute_s"]), float(times["wait_share"].max())))
    st.altair_chart(charts.worker_bars(times), key=f"workers.{row.run_id}")


def _details(runtime: Runtime, row: RunRow, epoch: int) -> None:
    _phases_line(runtime.store, row)
    _step_profile(runtime.store, row)
    with _closed("Weights and gradients", ":material/bar_chart:", row) as weights:
        if weights.open:
            _value_histograms(runtime.store, row, epoch)
    with _closed("Log", ":material/article:", row) as log:
        if log.open:
            text = runtime.home.run_dir(row.run_id).log_tail(60) or "The trainer has printed nothing yet."
            st.code(text, language=None, height=260)
    with _closed("Events", ":material/history:", row) as events:
        if events.open:
            st.dataframe(queries.events(runtime.store, row.run_id), hide_index=True, key=f"events.{row.run_id}")
    with _closed("Options and host", ":material/tune:", row) as options:
        if options.open:
            st.dataframe(home_view.options_table(row), hide_index=True, key=f"options.{row.run_id}")


def _closed(label: str, icon: str, row: RunRow) -> ExpanderContainer:
    """An expander that is filled only while it is open: this page is redrawn every second, and charts are what that costs."""
    return st.expander(label, icon=icon, key=f"{label}.{row.run_id}", on_change="rerun")


def _value_histograms(store: Store, row: RunRow, epoch: int) -> None:
    columns = st.columns(4)
    for index, (kind, network) in enumerate([(kind, network) for network in NETWORKS for kind in ("weights", "gradients")]):
        frame = queries.histogram(store, row.run_id, (f"{kind[:-1]}/{network}",), epoch)
        with columns[index]:
            if frame.empty:
                st.caption(f"{network.capitalize()} {kind}: after the first epoch.")
            else:
                widgets.steady_chart(partial(charts.value_histogram, kind=kind), frame, f"{kind}.{network}.{row.run_id}")


def _phases_line(store: Store, row: RunRow) -> None:
    phases = queries.phases(store, row.run_id)
    names = {"build": "load and build", "trace": "trace", "compile": "compile", "steady_step": "steady step", "probe": "probes"}
    parts = [f"{label} {words.duration(phases[name])}" for name, label in names.items() if name in phases]
    if "step_p95" in phases:
        between = f"{words.duration(phases['step_p05'])} to {words.duration(phases['step_p95'])}"
        parts.append(f"nine of ten steps {between}, slowest {words.duration(phases['step_max'])}")
    if parts:
        st.caption(
            " · ".join(parts).capitalize(),
            help="Compile: what the first step took beyond a steady one. Probes: samples and histograms of all epochs.",
        )


def _step_profile(store: Store, row: RunRow) -> None:
    if row.engine == "jax":
        return  # it makes no profiles
    profile = queries.profile(store, row.run_id)
    if profile.empty:
        st.caption("Where a step's time goes is shown here for runs with 'Profile steps' set on Launch.")
        return
    widgets.steady_chart(charts.step_profile, profile, f"profile.{row.run_id}")
    st.caption(
        f"Measured once, over {profile['steps'].iloc[0]} training steps that count in no other time: the bar of their epoch is shorter by them.",
        help="Each moment is divided among the operations that compute then. Exchange and input count only when nothing "
        "computes. A network's row holds the work of its own layers: the generator's gradient passes through the discriminator, "
        "and that part stands there.",
    )
