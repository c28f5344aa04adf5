"""The charts of a study's report: a frame in, an Altair chart out."""

from __future__ import annotations

import altair as alt
import pandas as pd

from dashboard import palette


def variant_points(
    frame: pd.DataFrame, unit: str, title: str, mean_word: str, height: int = 260
) -> alt.LayerChart:
    """One measure of every run as a dot, and each variant's mean with its interval as a bar, as far as it is drawn.

    `frame`: variant, variant_index, repeat, run_id, value, color (hex), mean, low, high, drawn_low, drawn_high. Values in
    `unit`; `mean_word`: which mean it is. Without an interval its ends are NaN, and no bar is drawn.
    """
    order = list(frame.sort_values("variant_index")["variant"].unique())
    x = alt.X(
        "variant:N",
        title=None,
        sort=order,
        axis=alt.Axis(labelAngle=0, labelLimit=140, labelFlush=False, labelOverlap=False, grid=False),
        scale=alt.Scale(type="point", padding=0.5),
    )
    y_scale = alt.Scale(zero=False, nice=True)
    base = alt.Chart(frame)
    runs = base.mark_circle(size=70, opacity=0.85).encode(
        x=x,
        y=alt.Y("value:Q", title=None, scale=y_scale),
        color=alt.Color("color:N", scale=None),
        tooltip=[
            alt.Tooltip("variant:N", title="Variant"),
            alt.Tooltip("repeat:Q", title="Repeat"),
            alt.Tooltip("run_id:N", title="Run"),
            alt.Tooltip("value:Q", title=unit, format=".4~g"),
        ],
    )
    of_mean = [
        alt.Tooltip("mean:Q", title=f"{mean_word}, {unit}" if unit else mean_word, format=".4~g"),
        alt.Tooltip("low:Q", title="95 % interval from", format=".4~g"),
        alt.Tooltip("high:Q", title="to", format=".4~g"),
    ]
    once = base.transform_joinaggregate(first="min(repeat)", groupby=["variant"]).transform_filter(
        "datum.repeat == datum.first"
    )
    interval = once.mark_rule(strokeWidth=8, opacity=0.25, color=palette.NEUTRAL, strokeCap="round").encode(
        x=x, y="drawn_low:Q", y2="drawn_high:Q", tooltip=of_mean
    )
    mean = once.mark_tick(thickness=3, size=34, color=palette.NEUTRAL).encode(
        x=x, y="mean:Q", tooltip=of_mean
    )
    return alt.LayerChart(layer=[interval, mean, runs]).properties(
        title=f"{title} ({unit})" if unit else title, height=height
    )
