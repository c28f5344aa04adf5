"""The figures of a study's report: its measures by variant, and its speed next to what the authors
of its workload have published.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import altair as alt
import pandas as pd
import streamlit as st

from dashboard import palette, plots, step_charts, tables
from dashboard.charts import layered
from dashboard.studies import measures as study_measures
from dashboard.studies import words as study_words
from gan_runtime import catalog
from gan_runtime.base import formats
from gan_runtime.catalog import declarations
from gan_runtime.catalog.entries import PublishedSpeeds
from gan_runtime.store.queries import RunRow


def variant_points(
    frame: pd.DataFrame, unit: str, title: str, mean_word: str, height: int = 260
) -> alt.LayerChart:
    """A measure of every run as a dot, and of each variant the mean with its interval as a bar.

    `frame`: variant, variant_index, repeat, run_id, value, color (hex), mean, low, high, drawn_low,
    drawn_high. Values in `unit`; `mean_word`: which mean it is. Without an interval, its ends are
    NaN and no bar is drawn.
    """
    x = alt.X(
        "variant:N",
        title=None,
        sort=list(frame.sort_values("variant_index")["variant"].unique()),
        axis=alt.Axis(
            labelAngle=0, labelLimit=140, labelFlush=False, labelOverlap=False, grid=False
        ),
        scale=alt.Scale(type="point", padding=0.5),
    )
    layers = (*_means(x, f"{mean_word}, {unit}" if unit else mean_word), _runs(x, unit))
    description = (
        "A dot for each run; the tick is the variant's mean, the bar its 95% interval. Bars that do"
        " not overlap suggest a difference."
    )
    heading = f"{title} ({unit})" if unit else title
    return layered(frame, *layers, title=heading, description=description, height=height)


def _runs(x: alt.X, unit: str) -> alt.Chart:
    """A dot for each run."""
    dots = alt.Chart().mark_circle(size=70, opacity=0.85)
    return dots.encode(
        x=x,
        y=alt.Y(
            "value:Q",
            title=None,
            axis=alt.Axis(format=",~r"),
            scale=alt.Scale(zero=False, nice=True),
        ),
        color=alt.Color("color:N", scale=None),
        tooltip=[
            alt.Tooltip("variant:N", title="Variant"),
            alt.Tooltip("repeat:Q", title="Repeat"),
            alt.Tooltip("run_id:N", title="Run"),
            alt.Tooltip("value:Q", title=unit, format=".4~g"),
        ],
    )


def _means(x: alt.X, title: str) -> tuple[alt.Chart, alt.Chart]:
    """For each variant, a wide bar for the interval and a tick for the mean."""
    tooltip = [
        alt.Tooltip("mean:Q", title=title, format=".4~g"),
        alt.Tooltip("low:Q", title="95% interval from", format=".4~g"),
        alt.Tooltip("high:Q", title="to", format=".4~g"),
    ]
    firsts = alt.Chart().transform_joinaggregate(first="min(repeat)", groupby=["variant"])
    once = firsts.transform_filter("datum.repeat == datum.first")
    interval = once.mark_rule(strokeWidth=8, opacity=0.25, color=palette.NEUTRAL, strokeCap="round")
    mean = once.mark_tick(thickness=3, size=34, color=palette.NEUTRAL)
    return (
        interval.encode(x=x, y=alt.Y("drawn_low:Q"), y2=alt.Y2("drawn_high:Q"), tooltip=tooltip),
        mean.encode(x=x, y=alt.Y("mean:Q"), tooltip=tooltip),
    )


def show_measure(results: pd.DataFrame, measure: str, page: str) -> None:
    """A measure as a chart. `measure`: a column of `results`, which are rows of
    `queries.study_results`.
    """
    column, frame = (
        study_measures.measure_of(measure, results),
        study_words.points(results, measure),
    )
    if frame.empty:
        st.caption(study_words.missing(results, measure))
        return
    draw = partial(variant_points, unit=column.unit, title=column.title, mean_word=column.mean_word)
    plots.steady_chart(draw, frame, f"{page}.{measure}")


HERE = "This study"
PLACE = ["System", "Devices", "Batch each", "Images/s", "Speed-up"]
WORDS = (
    "Simulated CPU cores share one processor and cannot get faster. Quality and losses are means"
    " over the last epoch. More devices do not help if the larger batch learns worse."
)


def show_published(results: pd.DataFrame, runs: Sequence[RunRow]) -> None:
    """Published speeds next to the study's; nothing if its runs have equal devices or several
    workloads, or no speeds are published.
    """
    published = published_speeds(runs)
    lines = speed_ups(results, runs, published) if published else pd.DataFrame()
    if published is None or lines.empty:
        return
    st.header("Next to published speeds", anchor=False)
    chart, right = st.columns(2, gap="medium")
    with chart:
        plots.steady_chart(step_charts.speed_up, lines, "study.published_speed_up")
    with right:
        table = published_table(results, runs, published)
        tables.show(table, hide_index=True, key="study.published", height="content")
    st.caption(f"Dashed: {published.source}. {published.setting} {WORDS}")


def published_speeds(runs: Sequence[RunRow]) -> PublishedSpeeds | None:
    """The speeds published for the one workload of these runs; None if there are none."""
    names = {row.workload for row in runs}
    entry = catalog.WORKLOADS.get(names.pop()) if len(names) == 1 else None
    return None if entry is None else entry.published


def speed_ups(
    results: pd.DataFrame, runs: Sequence[RunRow], published: PublishedSpeeds
) -> pd.DataFrame:
    """The rows of `step_charts.speed_up`, each line relative to its fewest devices; empty if the
    runs have only one number of devices.

    `results`: as `queries.study_results`.
    """
    rates = _rates(results, runs)
    if rates["devices"].nunique() < 2:
        return pd.DataFrame()
    rows = [
        (HERE, variant, devices, rate, True)
        for variant, devices, _, rate in rates.itertuples(index=False)
    ]
    rows += [
        (
            speed.system,
            f"batch {speed.batch_size_per_replica} each",
            speed.devices,
            published.images_per_s(speed),
            False,
        )
        for speed in published.speeds
    ]
    frame = pd.DataFrame(rows, columns=["system", "detail", "devices", "rate", "ours"])
    frame = frame.sort_values(["system", "devices"])
    return frame.assign(speed_up=frame["rate"] / frame.groupby("system")["rate"].transform("first"))


def published_table(
    results: pd.DataFrame, runs: Sequence[RunRow], published: PublishedSpeeds
) -> pd.DataFrame:
    """A row for each variant of the study, with quality and losses, and each published speed."""
    rates = _rates(results, runs)
    outcomes = [
        name for name in _quality_names(runs) if name in results and results[name].notna().any()
    ]
    fewest = float(rates.sort_values("devices")["rate"].iloc[0])
    rows = [
        [
            variant,
            *_place(devices, batch, rate, fewest),
            *(_mean(results[results["variant"] == variant], name) for name in outcomes),
        ]
        for variant, devices, batch, rate in rates.itertuples(index=False)
    ]
    first = {speed.system: speed for speed in reversed(published.speeds)}
    for speed in published.speeds:
        rate, of_first = published.images_per_s(speed), published.images_per_s(first[speed.system])
        cells = _place(speed.devices, speed.batch_size_per_replica, rate, of_first)
        rows.append([speed.system, *cells, *["" for _ in outcomes]])
    return pd.DataFrame(
        rows,
        columns=[*PLACE, *(study_measures.measure_of(name, results).label for name in outcomes)],
    )


def _quality_names(runs: Sequence[RunRow]) -> list[str]:
    """The names of the qualities and the losses."""
    declaration = declarations.of(runs[0].workload)
    return [metric.name for metric in (*declaration.qualities, *declaration.losses)]


def _mean(rows: pd.DataFrame, name: str) -> str:
    """The mean of a variant's repeats; the table of the study has its interval."""
    measure, mean = study_measures.measure_of(name, rows), float(rows[name].mean())
    return "–" if math.isnan(mean) else f"{mean * measure.scale:{measure.form}}"


def _place(devices: int, batch: int, rate: float, of_fewest: float) -> list[str]:
    return [str(devices), formats.count(batch), formats.count(rate), f"{rate / of_fewest:.2f}"]


def _rates(results: pd.DataFrame, runs: Sequence[RunRow]) -> pd.DataFrame:
    """By measured variant: variant, devices, batch (per device), rate (images/s, mean of its
    repeats).
    """
    by_run = {row.run_id: row for row in runs}
    rates = []
    for variant, rows in results.dropna(subset=["images_per_s"]).groupby("variant", sort=False):
        row = by_run[rows["run_id"].iloc[0]]
        devices = row.replicas * row.workers
        rates.append(
            (variant, devices, row.batch_size_global // devices, float(rows["images_per_s"].mean()))
        )
    return pd.DataFrame(rates, columns=["variant", "devices", "batch", "rate"])
