"""The charts of a study's report: a frame in, an Altair chart out."""

from __future__ import annotations

import altair as alt
import pandas as pd

from dashboard import palette


def variant_points(frame: pd.DataFrame, unit: str, title: str, height: int = 260) -> alt.LayerChart:
    """One measure of every run as a dot, and each variant's median with its interval as a bar.

    `frame`: variant, variant_index, repeat, run_id, value, color (hex), median, low, high. Values in `unit`.
    """
    order = list(frame.sort_values("variant_index")["variant"].unique())
    x = alt.X(
        "variant:N",
        title=None,
        sort=order,
        axis=alt.Axis(labelAngle=0, labelLimit=140, labelFlush=False, grid=False),
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
    interval = base.mark_rule(strokeWidth=8, opacity=0.25, color=palette.NEUTRAL, strokeCap="round").encode(
        x=x, y="low:Q", y2="high:Q"
    )
    median = base.mark_tick(thickness=3, size=34, color=palette.NEUTRAL).encode(
        x=x, y="median:Q", tooltip=[alt.Tooltip("median:Q", title=f"Median, {unit}", format=".4~g")]
    )
    return alt.LayerChart(layer=[interval, median, runs]).properties(title=f"{title} ({unit})" if unit else title, height=height)
