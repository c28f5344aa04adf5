"""The sections XLA pay-back and Same losses? of Studies: runs that differ in one option only,
and what each of its values costs.
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
    " Compile: what it took beyond a steady step. Steady step: median over the later calls."
)


def show(runtime: Runtime, option: str) -> None:
    """The whole page: which runs, when compiling is paid back, what each variant costs and is
    made of, whether the losses agree.
    """
    store = runtime.store
    chosen = pick_set(store, option)
    if chosen is None:
        how_to_start(runtime, option)
        return
    medians = queries.variant_medians(store, chosen.variants)
    pay_back(store, chosen, medians)
    table(chosen, medians)
    kernels(store, chosen)
    work(store, chosen)
    losses(store, chosen)


def pick_set(store: Store, option: str) -> ComparableSet | None:
    """One set of runs that differ in `option` only, from `?run=…` or the newest; None when
    there is none.
    """
    asked = st.query_params.get("run", "")
    sets = _offered(store, option, asked)
    if not sets:
        return None
    by_oldest = {_oldest(comparable): comparable for comparable in sets}
    shown = next(
        (oldest for oldest, comparable in by_oldest.items() if asked in _run_ids(comparable)),
        next(iter(by_oldest)),
    )
    picked = st.selectbox(
        f"Runs that differ in {LABELS[option]} only",
        list(by_oldest),
        index=list(by_oldest).index(shown),
        format_func=lambda oldest: _set_label(by_oldest[oldest]),
    )
    if picked != shown:
        st.query_params["run"] = picked
    return by_oldest[picked]


def _offered(store: Store, option: str, asked: str) -> list[ComparableSet]:
    """Without hidden runs; all where none is left without them.

    That of a run that is `asked` for is there in any case.
    """
    sets = queries.comparable_sets(store, option)
    shown = {row.run_id for row in run_selection.runs(store, (asked,))}
    found = []
    for comparable in sets:
        kept = {
            value: left
            for value, rows in comparable.runs.items()
            if (left := tuple(row for row in rows if row.run_id in shown))
        }
        if len(kept) > 1:
            found.append(replace(comparable, runs=kept))
        elif asked in _run_ids(comparable):
            found.append(comparable)
    return found or sets


def how_to_start(runtime: Runtime, option: str) -> None:
    """Which runs are missing, and the way to start them."""
    first, second, *_ = (value_name(option, value) for value in RunSpec.options()[option].choices)
    st.info(
        f"No two stored runs differ in {LABELS[option]} alone yet. Start the same run twice, once"
        f" with {first} and once with {second}, everything else as it is, the seed too: their times"
        " and curves appear here as soon as both have ended. A study queues them for you."
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
    ended = [
        row for row in run_selection.runs(runtime.store) if row.status in ("finished", "stopped")
    ]
    if ended:
        other = next(
            value
            for value in RunSpec.options()[option].choices
            if value != json.loads(ended[0].spec)[option]
        )
        spec = runtime.home.run_dir(ended[0].run_id).spec_path
        widgets.command_line(
            f"{command_line()} train --spec {spec} --set {option}={other}",
            f"A partner for {words.plain(ended[0].name)}, from the command line",
        )


def pay_back(store: Store, chosen: ComparableSet, medians: pd.DataFrame) -> None:
    """When compiling is paid back: lines over the steps, and a sentence for each variant but
    the first.
    """
    names = {value: value_name(chosen.option, value) for value in chosen.runs}
    times = zip(medians["variant"], medians["compile"], medians["steady_step"], strict=True)
    costs = {names[value]: Cost(compile_s, step_s) for value, compile_s, step_s in times}
    steps = max(queries.progress(store, rows[0].run_id).last_step for rows in chosen.runs.values())
    plots.chart(
        variant_charts.pay_back(costs, _colors(chosen), steps), key=f"{chosen.option}.pay_back"
    )
    first, *others = costs
    for other in others:
        st.markdown(words.break_even((first, costs[first]), (other, costs[other])))


def table(chosen: ComparableSet, medians: pd.DataFrame) -> None:
    """Start, speed and memory of each variant.

    `medians` as `queries.variant_medians` gives them.
    """
    usual = medians["steady_step"].iloc[0]
    device = medians["device_peak_bytes"].notna().any()
    shown = pd.DataFrame(
        {
            "Variant": [value_name(chosen.option, value) for value in medians["variant"]],
            "Runs": [str(runs) for runs in medians["runs"]],
            **{
                label: [formats.timing(_known(value)) for value in medians[name]]
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
    tables.show(shown, hide_index=True, key=f"{chosen.option}.table")
    if medians["runs"].min() < 3:
        st.caption(
            "Fewer than three runs of a kind: start it again with other seeds, and the medians get"
            " steadier."
        )


COUNTS = {
    "operations": "Operations traced",
    "kernels_before": "Kernels before XLA",
    "kernels_after": "Kernels after XLA",
    "fusions": "Of these, fusions",
}
COUNTS_HELP = (
    "Counted in the traced graph and in XLA's own text of the forward and backward pass. Before:"
    " each instruction would be a kernel. After: XLA has removed some and put others together into"
    " fusions. A dash: XLA compiles nothing, or 'Count kernels' was not set."
)
TIMES = {
    "trace": "Trace",
    "first_call": "First call",
    "compile": "Compile",
    "steady_step": "Steady step",
}


def kernels(store: Store, chosen: ComparableSet) -> None:
    """How much a step is made of, before and after XLA has put operations together."""
    counts = queries.variant_kernels(store, chosen.variants)
    if counts.empty:
        return
    shown = pd.DataFrame(
        {
            "Variant": [value_name(chosen.option, value) for value in counts["variant"]],
            **{
                label: [formats.count(_known(value)) for value in counts[name]]
                for name, label in COUNTS.items()
            },
        }
    )
    st.header("What a step is made of", help=COUNTS_HELP)
    tables.show(shown, hide_index=True, key=f"{chosen.option}.kernels")
    if counts["kernels_after"].isna().all():
        st.caption(
            "Kernels and fusions are counted in runs with XLA jit and 'Count kernels' set on"
            " Launch."
        )


def work(store: Store, chosen: ComparableSet) -> None:
    """Where a step's time goes in each variant that was profiled."""
    profiles = queries.variant_profiles(store, chosen.variants)
    if profiles.empty:
        st.caption(
            "Where a step's time goes is shown here for runs with 'Profile steps' set on Launch."
        )
        return
    named = profiles.assign(
        variant=[value_name(chosen.option, value) for value in profiles["variant"]]
    )
    plots.steady_chart(step_charts.by_variant, named, f"{chosen.option}.work")


def losses(store: Store, chosen: ComparableSet) -> None:
    """The losses of runs of the same seed laid over each other, and how far they are apart."""
    st.header(
        "Are the losses the same?",
        help="From the same seed: the same first weights, images and noise, step by step.",
    )
    pairs = chosen.of_one_seed()
    if not pairs:
        st.caption(
            "No two of these runs have the same seed, so their curves cannot be compared step by"
            " step."
        )
        return
    names = {row.run_id: value_name(chosen.option, value) for value, row in pairs.items()}
    all_colors = _colors(chosen)
    colors = {name: all_colors[name] for name in names.values()}
    plots.zoom_line(chosen.option)
    known = queries.declared_of(store, list(names)).losses
    for begin in range(0, len(known), ACROSS):
        beside = known[begin : begin + ACROSS]
        for column, loss in zip(st.columns(ACROSS, gap="medium"), beside, strict=False):
            with column:
                _loss_curves(store, chosen.option, names, colors, loss)
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
    first, *others = names
    unit = f" {loss.unit}" if loss.unit else ""
    parities = [(names[other], queries.parity(store, first, other, loss.name)) for other in others]
    return [
        f"{name} against {names[first]}, {formats.count(apart.steps)} steps:"
        f" {apart.mean_difference:.3g}{unit} apart on average, at most {apart.max_difference:.3g}"
        f" at step {formats.count(apart.at_step)}."
        for name, apart in parities
        if apart is not None
    ]


def _colors(chosen: ComparableSet) -> dict[str, str]:
    """Each variant in the color of the run that stands for it, or another where two would be
    equal.
    """
    rows = {**{value: rows[0] for value, rows in chosen.runs.items()}, **chosen.of_one_seed()}
    colors = palette.distinct([rows[value].color for value in chosen.runs])
    return {
        value_name(chosen.option, value): color
        for value, color in zip(chosen.runs, colors, strict=True)
    }


def _run_ids(one: ComparableSet) -> list[str]:
    return [run_id for run_ids in one.variants.values() for run_id in run_ids]


def _oldest(one: ComparableSet) -> str:
    """A name for the set that stays when more runs join it."""
    return min(
        (row for rows in one.runs.values() for row in rows), key=lambda row: row.created_at
    ).run_id


def _set_label(one: ComparableSet) -> str:
    row = next(iter(one.runs.values()))[0]
    counts = ", ".join(
        f"{value_name(one.option, value)} ({len(rows)})" for value, rows in one.runs.items()
    )
    return f"{counts} · {_settings(row, one.option)}"


def _settings(row: RunRow, without: str) -> str:
    """What the runs of a set have in common, in short."""
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


def _known(value: float) -> float | None:
    return None if pd.isna(value) else float(value)


def _size(value: float) -> str:
    return "–" if pd.isna(value) else formats.size(value)
