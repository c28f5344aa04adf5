"""The paper's figures, drawn from stored runs. A frame in, an altair chart out."""

from __future__ import annotations

from typing import cast

import altair as alt
import pandas as pd

from dashboard import chart_style, palette
from dashboard.charts import layered, legend

SMOOTHED = 9


def epoch_lines(frame: pd.DataFrame, colors: dict[str, str], height: int = 360) -> alt.Chart:
    """Training seconds of each epoch, a line a run. `frame`: variant, run_id, epoch, seconds. Fig. 6."""
    chart = (
        alt.Chart(frame)
        .mark_line(point=alt.OverlayMarkDef(size=22), strokeWidth=1.6)
        .encode(
            x=alt.X("epoch:Q", title="Epoch", axis=alt.Axis(tickMinStep=1, grid=False, format="d")),
            y=alt.Y("seconds:Q", title="Training time of the epoch (s)", scale=alt.Scale(zero=True)),
            color=_variants(colors),
            detail=alt.Detail("run_id:N"),
            tooltip=[
                alt.Tooltip("variant:N", title="Variant"),
                alt.Tooltip("epoch:Q", title="Epoch", format="d"),
                alt.Tooltip("seconds:Q", title="Seconds", format=".2f"),
            ],
        )
    )
    return cast(alt.Chart, chart.properties(title="Training time of each epoch", height=height))


def smooth_lines(
    frame: pd.DataFrame,
    colors: dict[str, str],
    title: str,
    axis: str,
    smoothed: int = SMOOTHED,
    height: int = 320,
) -> alt.LayerChart:
    """A metric of the variants over epochs, faint as measured and as the mean of `smoothed` points. `frame`: variant, x, low, mean, high, epoch. Figs. 7, 9, 10."""
    base = alt.Chart().encode(
        x=alt.X("x:Q", title="Epoch", axis=alt.Axis(tickMinStep=1, grid=False), scale=alt.Scale(nice=False)),
        color=_variants(colors),
    )
    raw = base.mark_line(opacity=0.25, strokeWidth=1).encode(
        y=alt.Y("mean:Q", title=axis, scale=alt.Scale(zero=False))
    )
    bold = (
        base.transform_window(
            smoothed="mean(mean)", frame=[1 - smoothed, 0], groupby=["variant"], sort=[alt.SortField("x")]
        )
        .mark_line(strokeWidth=2.2)
        .encode(y=alt.Y("smoothed:Q"))
    )
    reader = base.mark_circle(size=80, opacity=0).encode(
        y=alt.Y("mean:Q"),
        tooltip=[
            alt.Tooltip("variant:N", title="Variant"),
            alt.Tooltip("epoch:Q", title="Epoch", format="d"),
            alt.Tooltip("mean:Q", title=axis, format=".4~g"),
        ],
    )
    zoom = alt.selection_interval(bind="scales", encodings=["x"], name="zoom")
    canvas = {"embedOptions": {"renderer": "canvas"}}
    return layered(frame, raw, bold, reader.add_params(zoom), title=title, height=height, usermeta=canvas)


def ratio_bars(frame: pd.DataFrame, title: str, axis: str, height: int = 150) -> alt.LayerChart:
    """Bars beside each other with their value at the end. `frame`: label, value, who ("here" or "paper"). Figs. 5, 12, 13."""
    who = alt.Color(
        "who:N",
        title=None,
        legend=legend(),
        scale=alt.Scale(domain=["Here", "The paper"], range=[palette.RUNS[0], palette.NEUTRAL]),
    )
    base = alt.Chart().encode(
        x=alt.X("value:Q", title=axis, axis=alt.Axis(grid=False)),
        y=alt.Y("label:N", title=None, sort=None, axis=alt.Axis(labelLimit=220)),
    )
    bars = base.mark_bar(height=16).encode(
        color=who, tooltip=["label:N", alt.Tooltip("value:Q", title=axis, format=".3~g")]
    )
    text = base.mark_text(align="left", dx=5, color=chart_style.ink()).encode(
        text=alt.Text("value:Q", format=".2~f")
    )
    return layered(frame, bars, text, title=title, height=height)


def _variants(colors: dict[str, str]) -> alt.Color:
    scale = alt.Scale(domain=list(colors), range=list(colors.values()))
    return alt.Color("variant:N", title=None, legend=legend(), scale=scale)
