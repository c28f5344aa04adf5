"""The charts of a study's report: a frame in, an Altair chart out."""

from __future__ import annotations

import altair as alt
import pandas as pd

from dashboard import palette
from dashboard.charts import layered


def variant_points(
    frame: pd.DataFrame, unit: str, title: str, mean_word: str, height: int = 260
) -> alt.LayerChart:
    """One measure of every run as a dot, and each variant's mean with its interval as a bar, as far as it is drawn.

    `frame`: variant, variant_index, repeat, run_id, value, color (hex), mean, low, high, drawn_low, drawn_high. Values in
    `unit`; `mean_word`: which mean it is. Without an interval its ends are NaN, and no bar is drawn.
    """
    x = alt.X(
        "variant:N",
        title=None,
        sort=list(frame.sort_values("variant_index")["variant"].unique()),
        axis=alt.Axis(labelAngle=0, labelLimit=140, labelFlush=False, labelOverlap=False, grid=False),
        scale=alt.Scale(type="point", padding=0.5),
    )
    layers = (*_means(x, f"{mean_word}, {unit}" if unit else mean_word), _runs(x, unit))
    return layered(frame, *layers, title=f"{title} ({unit})" if unit else title, height=height)


def _runs(x: alt.X, unit: str) -> alt.Chart:
    """A dot of each run."""
    dots = alt.Chart().mark_circle(size=70, opacity=0.85)
    return dots.encode(
        x=x,
        y=alt.Y("value:Q", title=None, scale=alt.Scale(zero=False, nice=True)),
        color=alt.Color("color:N", scale=None),
        tooltip=[
            alt.Tooltip("variant:N", title="Variant"),
            alt.Tooltip("repeat:Q", title="Repeat"),
            alt.Tooltip("run_id:N", title="Run"),
            alt.Tooltip("value:Q", title=unit, format=".4~g"),
        ],
    )


def _means(x: alt.X, title: str) -> tuple[alt.Chart, alt.Chart]:
    """Of each variant once: a wide bar for the interval, and a tick for the mean."""
    tooltip = [
        alt.Tooltip("mean:Q", title=title, format=".4~g"),
        alt.Tooltip("low:Q", title="95 % interval from", format=".4~g"),
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
