"""The parts of the Compare page."""

from __future__ import annotations

import json

import altair as alt
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard import charts, option_words, words
from dashboard.metric_words import METRICS
from gan_runtime.spec import RunSpec
from gan_runtime.store import queries
from gan_runtime.store.queries import RunRow
from gan_runtime.store.store import Store


def unique_names(rows: list[RunRow]) -> dict[str, str]:
    """run_id → name for legends; the id is added where two runs share a name."""
    names = [row.name for row in rows]
    return {row.run_id: row.name if names.count(row.name) == 1 else f"{row.name} ({row.run_id})" for row in rows}


def x_axis(place: DeltaGenerator) -> queries.XAxis:
    """What the curves are drawn along."""
    axes: list[queries.XAxis] = ["step", "epoch", "wall_s"]
    picked = place.segmented_control("Along", axes, format_func=lambda axis: charts.X_TITLES[axis], default="step", required=True)
    return picked or "step"


def more_metrics(store: Store, rows: list[RunRow]) -> list[str]:
    """The metrics beside the losses that the person wants to see, of those that the runs have recorded."""
    present = set(queries.recorded(store, [row.run_id for row in rows])) - set(queries.LOSSES)
    return st.multiselect(
        "More curves",
        [metric for metric in METRICS if metric in present],
        format_func=lambda metric: METRICS[metric].title,
        placeholder="Scores, spread, gradients, updates, learning rates …",
        key="compare.metrics",
    )


def curves(frame: pd.DataFrame, names: dict[str, str], colors: dict[str, str], x: str, metric: str) -> None:
    """One metric of the runs, overlaid."""
    if frame.empty:
        st.info("None of these runs has finished a step yet.")
        return
    chart: alt.LayerChart = charts.run_curves(frame.assign(run=frame["run_id"].map(names)), colors, x, METRICS[metric])
    st.altair_chart(chart, key=f"compare.{metric}.{x}")


def numbers(store: Store, rows: list[RunRow], names: dict[str, str]) -> None:
    """Final numbers side by side."""
    st.subheader("Final numbers")
    table = queries.run_table(store).set_index("run_id").loc[[row.run_id for row in rows]]
    shown = pd.DataFrame(
        {
            "Run": list(names.values()),
            "State": list(table["status"]),
            "Epochs": [f"{done} / {epochs}" for done, epochs in zip(table["epochs_done"], table["epochs"], strict=True)],
            "Loss G": [words.loss(_known(value)) for value in table["loss_generator"]],
            "Loss D": [words.loss(_known(value)) for value in table["loss_discriminator"]],
            "Images/s": [words.count(_known(value)) for value in table["images_per_s"]],
            "Training time": [words.duration(_known(value)) for value in table["seconds"]],
            **{
                label: [words.duration(queries.phases(store, row.run_id).get(phase)) for row in rows]
                for phase, label in PHASES.items()
            },
        }
    )
    st.dataframe(shown, hide_index=True, key="compare.numbers")


PHASES = {"trace": "Trace", "compile": "Compile", "steady_step": "Steady step"}


def differences(rows: list[RunRow], names: dict[str, str]) -> None:
    """The options in which the runs differ, one column a run. What a run from before an option did is that option's default."""
    st.subheader("What differs")
    specs = {names[row.run_id]: {**option_words.defaults(), **json.loads(row.spec)} for row in rows}
    options = [option for name, option in RunSpec.options().items() if name != "name"]
    differing = [option for option in options if len({str(spec[option.name]) for spec in specs.values()}) > 1]
    if not differing:
        st.caption("Nothing: these runs have the same options.")
        return
    columns = {name: [option_words.value(option, spec[option.name]) for option in differing] for name, spec in specs.items()}
    table = pd.DataFrame({"Option": [option_words.label(option) for option in differing], **columns})
    st.dataframe(table, hide_index=True, key="compare.differences")


def _known(value: float) -> float | None:
    return None if pd.isna(value) else float(value)
