"""The lower parts of the Live page: where time goes, and what waits in closed expanders: values, log, events, options."""

from __future__ import annotations

import json
from functools import partial

import pandas as pd
import streamlit as st
from streamlit.elements.lib.mutable_expander_container import ExpanderContainer

from dashboard import charts, option_words, plots, step_charts, tables, words
from dashboard.histograms import words as histogram_words
from dashboard.live import host_words, log_words
from gan_runtime.catalog import declared
from gan_runtime.spec import RunSpec
from gan_runtime.store import queries
from gan_runtime.store.queries import RunRow
from gan_runtime.store.store import Store
from gan_runtime.supervision.runtime import Runtime

ACROSS = 4
LOG_LINES, READ_LINES = 60, 600  # shown; looked through for them


def show(runtime: Runtime, row: RunRow, epoch: int) -> None:
    """Phases and profile, then the expanders, each filled only while it is open."""
    _phases_line(runtime.store, row)
    _step_profile(runtime.store, row)
    with _closed("Weights and gradients", ":material/bar_chart:", row) as weights:
        if weights.open:
            _value_histograms(runtime.store, row, epoch)
    with _closed("Log", ":material/article:", row) as log:
        if log.open:
            _log(runtime, row)
    with _closed("Events", ":material/history:", row) as events:
        if events.open:
            tables.show(local_events(runtime.store, row), hide_index=True, key=f"events.{row.run_id}")
    with _closed("Options and host", ":material/tune:", row) as options:
        if options.open:
            tables.show(options_table(row), hide_index=True, key=f"options.{row.run_id}")


def local_events(store: Store, row: RunRow) -> pd.DataFrame:
    """The events of a run at the viewer's time, oldest first."""
    zone = st.context.timezone or "UTC"
    events = queries.events(store, row.run_id)
    at = pd.to_datetime(events["logged_at"], utc=True).dt.tz_convert(zone).dt.strftime("%Y-%m-%d %H:%M:%S")
    shown = events.assign(logged_at=at)[["logged_at", "level", "kind", "message", "attempt"]]
    return shown.set_axis([f"Time ({zone})", "Level", "Kind", "Message", "Attempt"], axis=1)


def options_table(row: RunRow) -> pd.DataFrame:
    """The run's options in the order of the form, then the host it ran on."""
    spec = json.loads(row.spec)
    rows = [
        (option_words.label(option), option_words.value(option, spec[name]), name)
        for name, option in RunSpec.options(row.workload).items()
        if name in spec
    ]
    host = json.loads(row.host) if row.host else {}
    rows += [(f"Host: {label}", text, "") for label, text in host_words.rows(host)]
    return pd.DataFrame(rows, columns=["Option", "Value", "Name in --set"])


def _closed(label: str, icon: str, row: RunRow) -> ExpanderContainer:
    """An expander that is filled only while it is open: this page is redrawn every second, and charts are what that costs."""
    return st.expander(label, icon=icon, key=f"{label}.{row.run_id}", on_change="rerun")


def _log(runtime: Runtime, row: RunRow) -> None:
    lines = runtime.home.run_dir(row.run_id).log_tail(READ_LINES).splitlines()
    everything = st.toggle(
        "All lines",
        key=f"all_lines.{row.run_id}",
        help="With what TensorFlow, XLA and CUDA print at each start.",
    )
    shown = lines if everything else log_words.without_noise(lines)
    nothing = "The trainer has printed nothing yet." if row.is_live else "This run has no log here."
    st.code("\n".join(shown[-LOG_LINES:]) or nothing, language=None, height=260)


def _value_histograms(store: Store, row: RunRow, epoch: int) -> None:
    """Weights and gradients of each network as a whole, four beside each other."""
    shown = histogram_words.whole_networks(
        declared.of(row.workload), queries.histogram_names(store, [row.run_id])
    )
    for begin in range(0, len(shown), ACROSS):
        for column, panel in zip(st.columns(ACROSS), shown[begin : begin + ACROSS], strict=False):
            frame = queries.histogram(store, row.run_id, (panel.series,), epoch)
            with column:
                if frame.empty:
                    st.caption(f"{panel.title}: after the first epoch.")
                else:
                    key, named = f"{panel.series}.{row.run_id}", (panel.title, panel.axis, panel.color)
                    plots.kept_chart(charts.value_histogram, frame, key, *named)


def _phases_line(store: Store, row: RunRow) -> None:
    phases = queries.phases(store, row.run_id)
    names = {
        "build": "load and build",
        "trace": "trace",
        "compile": "compile",
        "steady_step": "steady step",
        "probe": "probes",
    }
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
    known = declared.of(row.workload)
    names = [*(network.name for network in known.networks), *filter(None, profile["network"])]
    titles = {name: known.network(name).title for name in names}
    phases = sorted(filter(None, profile["phase"].unique()))
    draw = partial(step_charts.by_network, titles=titles)
    if len(phases) > 1:
        draw = partial(step_charts.by_phase, phases=phases)
    plots.steady_chart(draw, profile, f"profile.{row.run_id}")
    st.caption(
        f"{step_charts.totals(profile)}. Measured once, over {profile['steps'].iloc[0]} training steps that count in no other time: the bar of their epoch is shorter by them.",
        help="Each moment is divided among the operations that compute then. Exchange and input count only when nothing "
        "computes. A network's row holds the work of its own layers: where the gradient of one passes through another, that part "
        "stands with the other.",
    )
