"""Charts of a TPU compile check: a frame in, an Altair chart out."""

from __future__ import annotations

from typing import cast

import altair as alt
import pandas as pd

from dashboard import palette
from dashboard.charts import legend
from dashboard.tpu_frames import MEMORY, PARTS, PREDICTED, PUBLISHED


def by_batch(frame: pd.DataFrame, height: int = 300) -> alt.LayerChart:
    """Training time per epoch over the batch size, the smallest batch being 1. `frame`: see `tpu_frames`."""
    who = alt.Color(
        "who:N",
        title=None,
        legend=legend(),
        scale=alt.Scale(domain=[PREDICTED, PUBLISHED], range=[palette.RUNS[0], palette.NEUTRAL]),
    )
    base = alt.Chart(frame).encode(
        x=alt.X("batch:O", title="Global batch (images per step)", axis=alt.Axis(labelAngle=0, grid=False)),
        y=alt.Y(
            "relative:Q", title="Time of an epoch, smallest batch = 100 %", axis=alt.Axis(format="%"), scale=alt.Scale(zero=True)
        ),
        color=who,
    )
    lines = base.mark_line(strokeWidth=2).encode(
        strokeDash=alt.StrokeDash("who:N", legend=None, scale=alt.Scale(domain=[PREDICTED, PUBLISHED], range=[[1, 0], [5, 4]]))
    )
    points = base.mark_circle(size=70).encode(
        tooltip=[
            alt.Tooltip("who:N", title="Who"),
            alt.Tooltip("batch:O", title="Batch"),
            alt.Tooltip("relative:Q", title="Of the smallest", format=".0%"),
            alt.Tooltip("seconds:Q", title="Seconds per epoch", format=".3~g"),
        ]
    )
    text = base.mark_text(dy=-12, fontSize=12).encode(text=alt.Text("label:N"))
    return cast(
        alt.LayerChart,
        alt.layer(lines, points, text).properties(
            title="Time of an epoch by batch size, as predicted and as published", height=height
        ),
    )


def by_devices(frame: pd.DataFrame, height: int = 300) -> alt.LayerChart:
    """Seconds per epoch over the number of cores, stacked by what they go to. `frame`: see `tpu_frames`."""
    order = list(PARTS)
    bars = (
        alt.Chart(frame)
        .transform_calculate(place=f"indexof({order}, datum.part)")
        .mark_bar(size=34)
        .encode(
            x=alt.X("devices:O", title="Cores", axis=alt.Axis(labelAngle=0, grid=False)),
            y=alt.Y("seconds:Q", title="Predicted seconds per epoch", stack=True),
            color=alt.Color(
                "part:N",
                title=None,
                legend=legend(),
                scale=alt.Scale(domain=order, range=[palette.RUNS[0], palette.WORK["gradient_all_reduce"], palette.WAITING]),
            ),
            order=alt.Order("place:Q"),
            tooltip=[
                alt.Tooltip("devices:O", title="Cores"),
                alt.Tooltip("part:N", title="Part"),
                alt.Tooltip("seconds:Q", title="Seconds", format=".3~g"),
                alt.Tooltip("total:Q", title="All parts", format=".3~g"),
            ],
        )
    )
    text = (
        alt.Chart(frame)
        .mark_text(dy=-8, color=palette.NEUTRAL)
        .encode(x="devices:O", y="max(total):Q", text=alt.Text("max(total):Q", format=".3~g"))
    )
    return cast(
        alt.LayerChart, alt.layer(bars, text).properties(title="Predicted seconds per epoch by number of cores", height=height)
    )


def memory_bar(frame: pd.DataFrame, height: int = 46) -> alt.Chart:
    """Memory of one core: what is needed, of what is there. `frame`: see `tpu_frames`."""
    parts = list(MEMORY)
    colors = [palette.RUNS[0], palette.WORK["forward"], palette.WORK["optimizer"], palette.WAITING]
    chart = (
        alt.Chart(frame)
        .mark_bar(height=22)
        .encode(
            x=alt.X("bytes:Q", title=None, stack="normalize", axis=alt.Axis(format="%", grid=False, tickCount=5)),
            color=alt.Color("part:N", title=None, sort=parts, legend=legend(), scale=alt.Scale(domain=parts, range=colors)),
            order=alt.Order("place:Q"),
            tooltip=[alt.Tooltip("part:N", title="Part"), alt.Tooltip("size:N", title="Size")],
        )
    )
    return cast(alt.Chart, chart.properties(height=height))
