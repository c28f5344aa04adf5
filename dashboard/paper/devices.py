"""Fig. 13 and the scaling of runs over devices, next to published results."""

from __future__ import annotations

import itertools
import json

import pandas as pd
import streamlit as st

from dashboard import option_words, plots, step_charts, tables
from dashboard.paper import figure as paper_figure
from dashboard.paper import verdicts, words
from dashboard.paper.verdicts import Batches
from dashboard.studies import words as study_words
from gan_runtime.catalog.domain import DOMAINS
from gan_runtime.catalog.entries import PublishedScaling, PublishedTimes
from gan_runtime.spec import RunSpec, nesting
from gan_runtime.store import queries
from gan_runtime.store.store import Store
from gan_runtime.studies import references

# Options that have a column.
COLUMNS = {
    "workload",
    "dataset",
    "accelerator",
    "engine",
    "precision",
    "xla",
    "batch_size_global",
}
SCALING = [domain.scaling for domain in DOMAINS.values() if domain.scaling]
TIMES = [domain.times for domain in DOMAINS.values() if domain.times]
# The runs of a line agree in these.
GROUPED_BY = ["dataset", "images", "accelerator", "settings", "cpu_model", "imported"]


def show(store: Store, batches: Batches | None) -> None:
    """Fig. 13 and scaling. `batches`: a study of the question "devices" with a finished run."""
    rates = queries.rates_by_device(store, "dcgan_mnist")
    _accelerator_figure(store, batches, rates)
    _scaling(rates)


def _accelerator_figure(store: Store, batches: Batches | None, rates: pd.DataFrame) -> None:
    with paper_figure.box("13", "CPU, GPU, TPU"):
        if batches is None:
            paper_figure.claim(references.FASTER, verdicts.NO_DEVICES)
        else:
            paper_figure.source(store, batches.ranked, batches.study, batches.run_ids)
            paper_figure.claim(
                references.FASTER, batches.judge(words.accelerators(batches.results))
            )
            for sentence in study_words.sentences(batches.results):
                st.markdown(f"- {sentence}")
            paper_figure.points(batches.results, "epoch_seconds")
        st.caption(readings())
        if rates.empty:
            st.caption("No finished run of the paper's network is stored here yet.")
            return
        st.markdown("**All finished runs of the paper's network**")
        tables.show(
            rate_table(rates),
            hide_index=True,
            key="paper.13",
            column_config={"Images/s": st.column_config.NumberColumn(format="localized")},
        )


def readings() -> str:
    """What "x% faster" can mean, as shares of the time."""
    shares = "; ".join(
        f"{name} × {1.0 - share:.2f} or × {1.0 / (1.0 + share):.2f}"
        for name, share in references.PAPER_FASTER_THAN.items()
    )
    return (
        f"“x% faster” has two readings: x% less time, or x% more speed. As shares of the time of"
        f" {shares}."
    )


def rate_table(rates: pd.DataFrame) -> pd.DataFrame:
    """`queries.rates_by_device` in words."""
    return pd.DataFrame(
        {
            "Accelerator": rates["accelerator"].str.upper(),
            "Devices": rates["devices"],
            "Batch": rates["batch_size_global"],
            "Images/s": rates["images_per_s"].round(),
            "Runs": rates["runs"],
            "Precision": rates["precision"].map(option_words.choice),
            "XLA": [
                _xla(*settings)
                for settings in rates[["accelerator", "engine", "xla"]].itertuples(index=False)
            ],
            "Engine": [study_words.ENGINES.get(name, name) for name in rates["engine"]],
            "Data": [_data(*pair) for pair in zip(rates["dataset"], rates["images"], strict=True)],
            "Other options": [_other_options(settings) for settings in rates["settings"]],
            "Host": [
                f"{row.cpu_model}{' (imported)' if row.imported else ''}"
                for row in rates.itertuples()
            ],
        }
    )


def _scaling(rates: pd.DataFrame) -> None:
    """Scaling of stored runs next to published tables."""
    st.header("Scaling, next to published results")
    lines = speed_ups(rates)
    ours = lines.loc[lines["ours"], "system"].nunique()
    here = (
        "Solid: stored runs that differ only in the number of devices. "
        if ours
        else (
            "No stored runs differ only in the number of devices. Start a study of Replicas or"
            " Devices on Launch. "
        )
    )
    st.caption(
        f"{here}Dashed: {_sources()}. Those are GPUs and TPU cores; simulated CPU cores share one"
        " processor and cannot get faster."
    )
    plots.steady_chart(step_charts.speed_up, lines, "paper.scaling")
    left, right = st.columns(2, gap="large")
    with left:
        for scaling in SCALING:
            _epochs(scaling)
    with right:
        for times in TIMES:
            _times(times)


def _sources() -> str:
    return "; ".join(scaling.source for scaling in SCALING)


def _epochs(scaling: PublishedScaling) -> None:
    st.markdown(f"**{scaling.title}**")
    table = [
        (speed.system, speed.devices, speed.batch_size_per_replica, speed.seconds)
        for speed in scaling.speeds
    ]
    tables.show(
        pd.DataFrame(table, columns=["System", "Devices", "Batch per device", "Seconds per epoch"]),
        hide_index=True,
        key=f"paper.{scaling.who.lower()}",
    )


def _times(times: PublishedTimes) -> None:
    st.markdown(f"**{times.title}**")
    table = (
        pd.DataFrame(times.seconds)
        .map(lambda seconds: "–" if pd.isna(seconds) else f"{seconds:.0f}")
        .rename_axis("Batch")
        .reset_index()
    )
    tables.show(table, hide_index=True, key=f"paper.{times.title.partition(',')[0].lower()}")
    st.caption(f"{times.source}. A dash: not published.")


def speed_ups(rates: pd.DataFrame) -> pd.DataFrame:
    """Steady rates by number of devices, each line relative to its fewest devices: stored runs that
    differ only in that, and published ones.

    Columns: system (for the legend), detail (what the runs of a line share), devices, rate, ours,
    speed_up.
    """
    rows = []
    names: set[str] = set()
    for _, group in rates.groupby(GROUPED_BY, dropna=False, sort=False):
        if group["devices"].nunique() > 1:
            name, detail = _line_name(group.iloc[0], names), _line_detail(group.iloc[0])
            names.add(name)
            rows += [
                (name, detail, *pair, True)
                for pair in zip(group["devices"], group["images_per_s"], strict=True)
            ]
    rows += [
        (
            f"{scaling.who}, {speed.system}",
            f"batch {speed.batch_size_per_replica} per device",
            speed.devices,
            1.0 / speed.seconds,
            False,
        )
        for scaling in SCALING
        for speed in scaling.speeds
    ]
    frame = pd.DataFrame(rows, columns=["system", "detail", "devices", "rate", "ours"]).sort_values(
        ["system", "devices"]
    )
    return frame.assign(speed_up=frame["rate"] / frame.groupby("system")["rate"].transform("first"))


def _line_name(row: pd.Series, names: set[str]) -> str:
    """A short name for the legend; later lines of the same kind are numbered."""
    name = f"Here, {str(row['accelerator']).upper()}, batch {row['batch_size_global']}"
    numbered = (f"{name} ({number})" for number in itertools.count(2))
    return (
        name
        if name not in names
        else next(candidate for candidate in numbered if candidate not in names)
    )


def _line_detail(row: pd.Series) -> str:
    """For example: Digits (embedded), 1,797 images, mixed bfloat16, XLA off, TensorFlow, AMD EPYC
    (imported).
    """
    parts = (
        _data(row["dataset"], row["images"]),
        option_words.choice(row["precision"]),
        f"XLA {_xla(row['accelerator'], row['engine'], row['xla'])}",
        study_words.ENGINES.get(row["engine"], row["engine"]),
        f"{row['cpu_model']}{' (imported)' if row['imported'] else ''}",
    )
    return ", ".join(part for part in parts if part)


def _xla(accelerator: str, engine: str, xla: str) -> str:
    """XLA in words; a TPU and JAX compile every step whatever the option says."""
    return "always" if accelerator == "tpu" or engine == "jax" else option_words.choice(xla)


def _other_options(settings: str) -> str:
    """Options without a column that are not at their default, for example: R1 penalty 1.0."""
    options_here = json.loads(settings)
    options = RunSpec.options(nesting.workload_of(options_here))
    changed = [
        (name, value)
        for name, value in options_here.items()
        if name in options and name not in COLUMNS and value != options[name].default
    ]
    return (
        ", ".join(
            f"{options[name].label} {option_words.choice(value, name)}" for name, value in changed
        )
        or "–"
    )


def _data(dataset: str, images: float) -> str:
    return study_words.images_of(dataset, None if pd.isna(images) else int(images))
