"""The tabs When XLA pays off and Same losses? of Studies: runs that differ in one option only, and
the costs of its values.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pandas as pd
import streamlit as st

from dashboard import (
    actions,
    option_words,
    palette,
    plots,
    run_selection,
    step_charts,
    tables,
    widgets,
    words,
)
from dashboard.frame import places
from dashboard.studies import variant_charts
from gan_runtime import catalog
from gan_runtime.base import formats
from gan_runtime.base.metrics import Metric
from gan_runtime.commands.runtime import Runtime
from gan_runtime.records.home import command_line
from gan_runtime.spec import RunSpec
from gan_runtime.store import queries
from gan_runtime.store.queries import ComparableSet, RunRow
from gan_runtime.store.store import Store
from gan_runtime.studies.statistics import Cost

ACROSS = 2
LABELS = {"xla": "XLA", "precision": "precision"}
TABLE_HELP = (
    "Medians over the runs of a variant. First call: the first training call, one step long."
    " Compile: its time beyond a steady step. Steady step: median over the later calls."
)


def show(runtime: Runtime, option: str) -> None:
    """The tab: the selection of runs, when compiling is paid back, what each variant costs and is
    made of, and whether losses agree, which the tab of the precision asks first.
    """
    store = runtime.store
    comparable = pick_set(store, option)
    if comparable is None:
        how_to_start(runtime, option)
        return
    medians = queries.variant_medians(store, comparable.variants)
    if option == "precision":
        losses(store, comparable)
    pay_back(store, comparable, medians)
    table(comparable, medians)
    kernels(store, comparable)
    work(store, comparable)
    if option != "precision":
        losses(store, comparable)


def pick_set(store: Store, option: str) -> ComparableSet | None:
    """A set of runs that differ in `option` only, from `?run=…` or the newest; None if there is
    none.
    """
    address_run = st.query_params.get("run", "")
    sets = _visible_sets(store, option, address_run)
    if not sets:
        return None
    by_oldest = {_oldest(comparable): comparable for comparable in sets}
    current = next(
        (oldest for oldest, comparable in by_oldest.items() if address_run in _run_ids(comparable)),
        next(iter(by_oldest)),
    )
    selected = st.selectbox(
        f"Runs that differ in {LABELS[option]} only",
        list(by_oldest),
        index=list(by_oldest).index(current),
        format_func=lambda oldest: _set_label(by_oldest[oldest]),
    )
    if selected != current:
        st.query_params["run"] = selected
    return by_oldest[selected]


def _visible_sets(store: Store, option: str, address_run: str) -> list[ComparableSet]:
    """The sets without hidden runs; all sets if no others are left.

    The set of the run `address_run` is always included.
    """
    sets = queries.comparable_sets(store, option)
    visible = {row.run_id for row in run_selection.runs(store, (address_run,))}
    visible_sets = []
    for comparable in sets:
        visible_runs = {
            value: visible_rows
            for value, rows in comparable.runs.items()
            if (visible_rows := tuple(row for row in rows if row.run_id in visible))
        }
        if len(visible_runs) > 1:
            visible_sets.append(replace(comparable, runs=visible_runs))
        elif address_run in _run_ids(comparable):
            visible_sets.append(comparable)
    return visible_sets or sets


def how_to_start(runtime: Runtime, option: str) -> None:
    """The missing runs, and buttons to start them."""
    first, second, *_ = (value_name(option, value) for value in RunSpec.options()[option].choices)
    st.info(
        f"No two stored runs differ only in {LABELS[option]}. Start the same run twice with the"
        f" same seed, once with {first} and once with {second}. Times and curves appear here"
        " after both end. A study queues them for you."
    )
    with st.container(horizontal=True):
        st.page_link(places.LAUNCH, label="Start a run", icon=":material/rocket_launch:")
        st.page_link(
            places.LAUNCH,
            label="Start a study",
            icon=":material/science:",
            query_params={"tab": "study"},
        )
        actions.offer_examples(runtime, f"variants.{option}")
    for row in run_selection.runs(runtime.store):
        value = json.loads(row.spec).get(option)
        if row.status in ("finished", "stopped") and row.workload in catalog.WORKLOADS and value:
            other = next(choice for choice in RunSpec.options()[option].choices if choice != value)
            spec = runtime.home.run_dir(row.run_id).spec_path
            widgets.command_line(
                f"{command_line()} train --spec {spec} --set {option}={other}",
                f"A partner for {words.plain(row.name)}, from the command line",
            )
            break


def pay_back(store: Store, comparable: ComparableSet, medians: pd.DataFrame) -> None:
    """When compiling is paid back: lines over the steps, and a sentence for each other variant."""
    names = {value: value_name(comparable.option, value) for value in comparable.runs}
    times = zip(medians["variant"], medians["compile"], medians["steady_step"], strict=True)
    costs = {names[value]: Cost(compile_s, step_s) for value, compile_s, step_s in times}
    steps = max(
        queries.progress(store, rows[0].run_id).last_step for rows in comparable.runs.values()
    )
    plots.chart(
        variant_charts.pay_back(costs, _colors(comparable), steps),
        key=f"{comparable.option}.pay_back",
    )
    first, *rest = costs
    for other in rest:
        st.markdown(words.break_even((first, costs[first]), (other, costs[other])))


def table(comparable: ComparableSet, medians: pd.DataFrame) -> None:
    """Start, speed and memory of each variant.

    `medians`: as `queries.variant_medians`.
    """
    usual = medians["steady_step"].iloc[0]
    device = medians["device_peak_bytes"].notna().any()
    columns = pd.DataFrame(
        {
            "Variant": [value_name(comparable.option, value) for value in medians["variant"]],
            "Runs": [str(runs) for runs in medians["runs"]],
            **{
                label: [formats.timing(_finite_or_none(value)) for value in medians[name]]
                for name, label in TIMES.items()
            },
            "Images/s": [formats.count(value) for value in medians["images_per_s"]],
            "Speed": [f"{usual / value:.2f} ×" for value in medians["steady_step"]],
            "Memory, peak": [_size(value) for value in medians["process_peak_bytes"]],
            **(
                {"Device memory, peak": [_size(value) for value in medians["device_peak_bytes"]]}
                if device
                else {}
            ),
        }
    )
    st.header("What each costs", help=TABLE_HELP)
    tables.show(columns, hide_index=True, key=f"{comparable.option}.table")
    if medians["runs"].min() < 3:
        st.caption("Fewer than three runs per variant: add seeds to make the medians steadier.")


COUNTS = {
    "operations": "Operations traced",
    "kernels_before": "Kernels before XLA",
    "kernels_after": "Kernels after XLA",
    "fusions": "Of these, fusions",
}
COUNTS_HELP = (
    "Counted in the traced graph and in XLA's text of the forward and backward pass. Before:"
    " each instruction would be a kernel. After: XLA has removed some and merged others into"
    " fusions. A dash: XLA compiles nothing, or 'Count kernels' is not set."
)
TIMES = {
    "trace": "Trace",
    "first_call": "First call",
    "compile": "Compile",
    "steady_step": "Steady step",
}


def kernels(store: Store, comparable: ComparableSet) -> None:
    """The operations of a step, before and after XLA has fused them."""
    counts = queries.variant_kernels(store, comparable.variants)
    if counts.empty:
        return
    columns = pd.DataFrame(
        {
            "Variant": [value_name(comparable.option, value) for value in counts["variant"]],
            **{
                label: [formats.count(_finite_or_none(value)) for value in counts[name]]
                for name, label in COUNTS.items()
            },
        }
    )
    st.header("What a step is made of", help=COUNTS_HELP)
    tables.show(columns, hide_index=True, key=f"{comparable.option}.kernels")
    if counts["kernels_after"].isna().all():
        st.caption(
            "Kernels and fusions are counted in runs with XLA jit and 'Count kernels'. Set both"
            " on Launch."
        )


def work(store: Store, comparable: ComparableSet) -> None:
    """Where a step's time goes in each profiled variant."""
    profiles = queries.variant_profiles(store, comparable.variants)
    if profiles.empty:
        st.caption("Set 'Profile steps' on Launch to see where a step's time goes.")
        return
    shares = profiles.assign(
        variant=[value_name(comparable.option, value) for value in profiles["variant"]]
    )
    plots.steady_chart(step_charts.by_variant, shares, f"{comparable.option}.work")


def losses(store: Store, comparable: ComparableSet) -> None:
    """The losses of runs with the same seed, overlaid, and how far apart they are."""
    st.header(
        "Are the losses the same?",
        help="With the same seed: the same first weights, images and noise in each step.",
    )
    pairs = comparable.of_one_seed()
    if not pairs:
        st.caption(
            "No two of these runs have the same seed, so their losses cannot be compared step by"
            " step. Start a run with the seed of another."
        )
        return
    names = {row.run_id: value_name(comparable.option, value) for value, row in pairs.items()}
    all_colors = _colors(comparable)
    colors = {name: all_colors[name] for name in names.values()}
    plots.zoom_line(comparable.option)
    loss_metrics = queries.declared_of(store, list(names)).losses
    for begin in range(0, len(loss_metrics), ACROSS):
        row_metrics = loss_metrics[begin : begin + ACROSS]
        for column, loss in zip(st.columns(ACROSS, gap="medium"), row_metrics, strict=False):
            with column:
                _loss_curves(store, comparable.option, names, colors, loss)
                for sentence in _parities(store, names, loss):
                    st.caption(sentence)


def _loss_curves(
    store: Store, option: str, names: dict[str, str], colors: dict[str, str], loss: Metric
) -> None:
    frame = queries.curves(store, list(names), (loss.name,), window=plots.zoom_window(option))
    place = plots.place_of(loss.name, option)
    plots.chart(
        variant_charts.loss_curves(frame.assign(variant=frame["run_id"].map(names)), colors, loss),
        key=place,
        on_select=lambda: plots.follow(place, option, frame["step"]),
        selection_mode=plots.PARAMETERS,
    )


def value_name(option: str, value: str) -> str:
    """ "XLA off", "float32", "mixed bfloat16"."""
    return f"XLA {option_words.choice(value)}" if option == "xla" else option_words.choice(value)


def _parities(store: Store, names: dict[str, str], loss: Metric) -> list[str]:
    first, *rest = names
    unit = f" {loss.unit}" if loss.unit else ""
    parities = [(names[other], queries.parity(store, first, other, loss.name)) for other in rest]
    return [
        f"{name} against {names[first]}, {formats.count(apart.steps)} steps:"
        f" {apart.mean_difference:.3g}{unit} apart on average, at most {apart.max_difference:.3g}"
        f" at step {formats.count(apart.at_step)}."
        for name, apart in parities
        if apart is not None
    ]


def _colors(comparable: ComparableSet) -> dict[str, str]:
    """The color of each variant: that of its first run, or another if two would be equal."""
    rows = {
        **{value: rows[0] for value, rows in comparable.runs.items()},
        **comparable.of_one_seed(),
    }
    colors = palette.distinct([rows[value].color for value in comparable.runs])
    return {
        value_name(comparable.option, value): color
        for value, color in zip(comparable.runs, colors, strict=True)
    }


def _run_ids(comparable: ComparableSet) -> list[str]:
    return [run_id for run_ids in comparable.variants.values() for run_id in run_ids]


def _oldest(comparable: ComparableSet) -> str:
    """An id of the set that stays when more runs join it."""
    return min(
        (row for rows in comparable.runs.values() for row in rows), key=lambda row: row.created_at
    ).run_id


def _set_label(comparable: ComparableSet) -> str:
    row = next(iter(comparable.runs.values()))[0]
    counts = ", ".join(
        f"{value_name(comparable.option, value)} ({len(rows)})"
        for value, rows in comparable.runs.items()
    )
    return f"{counts} · {_settings(row, comparable.option)}"


def _settings(row: RunRow, without: str) -> str:
    """The options that the runs of a set share, in short."""
    spec = json.loads(row.spec)
    devices = (
        f"{row.replicas} {row.accelerator.upper()} replicas"
        if row.replicas > 1
        else row.accelerator.upper()
    )
    numbers = [value_name(name, spec[name]) for name in ("precision", "xla") if name != without]
    epochs = f"{row.epochs} epoch{'s' if row.epochs > 1 else ''}"
    return " · ".join(
        [row.workload, row.dataset, devices, *numbers, f"batch {row.batch_size_global}", epochs]
    )


def _finite_or_none(value: float) -> float | None:
    return None if pd.isna(value) else float(value)


def _size(value: float) -> str:
    return "–" if pd.isna(value) else formats.size(value)
