"""A study of more devices beside the speeds that the authors of its workload have published: a frame for the chart, a table, the part of the page."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd
import streamlit as st

from dashboard import plots, step_charts, tables, words
from dashboard.studies import measures as study_measures
from gan_runtime import catalog
from gan_runtime.catalog import declared
from gan_runtime.catalog.published import PublishedSpeeds
from gan_runtime.store.queries import RunRow

HERE = "This study"
PLACE = ["System", "Devices", "Batch each", "Images/s", "Speed-up"]
WORDS = (
    "Simulated CPU cores share one processor and cannot get faster. Beside the speed of this study stand the quality of what "
    "it generates, where its workload measures one, and its losses, means over the last epoch: more devices are worth nothing where the batch that fills them learns worse."
)


def show(results: pd.DataFrame, runs: Sequence[RunRow]) -> None:
    """Nothing where the devices of the runs do not differ, where several workloads train, or where one has no published speeds."""
    published = of(runs)
    lines = speed_ups(results, runs, published) if published else pd.DataFrame()
    if published is None or lines.empty:
        return
    st.header("Beside what its authors have published", anchor=False)
    chart, beside = st.columns(2, gap="medium")
    with chart:
        plots.steady_chart(step_charts.speed_up, lines, "study.published_speed_up")
    with beside:
        shown = table(results, runs, published)
        tables.show(shown, hide_index=True, key="study.published", height="content")
    st.caption(f"Dashed: {published.source}. {published.setting} {WORDS}")


def of(runs: Sequence[RunRow]) -> PublishedSpeeds | None:
    """Those of the one workload that these runs train; None where there are none."""
    names = {row.workload for row in runs}
    entry = catalog.WORKLOADS.get(names.pop()) if len(names) == 1 else None
    return None if entry is None else entry.published


def speed_ups(results: pd.DataFrame, runs: Sequence[RunRow], published: PublishedSpeeds) -> pd.DataFrame:
    """As `step_charts.speed_up` draws it, each line against its own fewest devices; empty below two numbers of devices here.

    `results` as `queries.study_results` gives them."""
    own = _rates(results, runs)
    if own["devices"].nunique() < 2:
        return pd.DataFrame()
    rows = [(HERE, variant, devices, rate, True) for variant, devices, _, rate in own.itertuples(index=False)]
    rows += [
        (
            one.system,
            f"batch {one.batch_size_per_replica} each",
            one.devices,
            published.images_per_s(one),
            False,
        )
        for one in published.speeds
    ]
    frame = pd.DataFrame(rows, columns=["system", "detail", "devices", "rate", "ours"])
    frame = frame.sort_values(["system", "devices"])
    return frame.assign(speed_up=frame["rate"] / frame.groupby("system")["rate"].transform("first"))


def table(results: pd.DataFrame, runs: Sequence[RunRow], published: PublishedSpeeds) -> pd.DataFrame:
    """A row a variant of the study with its quality and its losses, and a row a published speed."""
    own = _rates(results, runs)
    known = [name for name in _judging(runs) if name in results and results[name].notna().any()]
    fewest = float(own.sort_values("devices")["rate"].iloc[0])
    rows = [
        [
            variant,
            *_place(devices, batch, rate, fewest),
            *(_mean(results[results["variant"] == variant], name) for name in known),
        ]
        for variant, devices, batch, rate in own.itertuples(index=False)
    ]
    first = {one.system: one for one in reversed(published.speeds)}
    for one in published.speeds:
        rate, of_first = published.images_per_s(one), published.images_per_s(first[one.system])
        cells = _place(one.devices, one.batch_size_per_replica, rate, of_first)
        rows.append([one.system, *cells, *["" for _ in known]])
    return pd.DataFrame(
        rows, columns=[*PLACE, *(study_measures.measure_of(name, results).label for name in known)]
    )


def _judging(runs: Sequence[RunRow]) -> list[str]:
    """The names of what may choose the best epoch, and of the losses."""
    known = declared.of(runs[0].workload)
    return [metric.name for metric in (*known.qualities, *known.losses)]


def _mean(rows: pd.DataFrame, name: str) -> str:
    """Of the repeats of a variant; how sure it is stands in the table of the study."""
    measure, mean = study_measures.measure_of(name, rows), float(rows[name].mean())
    return "–" if math.isnan(mean) else f"{mean * measure.scale:{measure.form}}"


def _place(devices: int, batch: int, rate: float, of_fewest: float) -> list[str]:
    return [str(devices), words.count(batch), words.count(rate), f"{rate / of_fewest:.2f}"]


def _rates(results: pd.DataFrame, runs: Sequence[RunRow]) -> pd.DataFrame:
    """Of each variant that has been measured: variant, devices, batch (of each), rate (images/s, mean of its repeats)."""
    by_run = {row.run_id: row for row in runs}
    found = []
    for variant, rows in results.dropna(subset=["images_per_s"]).groupby("variant", sort=False):
        row = by_run[rows["run_id"].iloc[0]]
        devices = row.replicas * row.workers
        found.append((variant, devices, row.batch_size_global // devices, float(rows["images_per_s"].mean())))
    return pd.DataFrame(found, columns=["variant", "devices", "batch", "rate"])
