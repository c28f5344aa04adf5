"""Charts of a TPU compile check: a frame in, an Altair chart out."""

from __future__ import annotations

import altair as alt
import pandas as pd

from dashboard import chart_style, palette
from dashboard.charts import layered, legend
from dashboard.tpu.frames import PARTS, PREDICTED, PUBLISHED

ROOM = 1.15  # above the highest mark, for its label


def by_batch(frame: pd.DataFrame, height: int = 300) -> alt.LayerChart:
    """Training time per epoch over the batch size, the smallest batch being 1. `frame`: see `tpu_frames`."""
    who = alt.Color(
        "who:N",
        title=None,
        legend=legend(),
        scale=alt.Scale(domain=[PREDICTED, PUBLISHED], range=[palette.RUNS[0], palette.NEUTRAL]),
    )
    base = alt.Chart().encode(
        x=alt.X("batch:O", title="Global batch (images per step)", axis=alt.Axis(labelAngle=0, grid=False)),
        y=alt.Y(
            "relative:Q",
            title="Time of an epoch, first = 100 %",
            axis=alt.Axis(format="%"),
            scale=alt.Scale(zero=True),
        ),
        color=who,
    )
    lines = base.mark_line(strokeWidth=2).encode(
        strokeDash=alt.StrokeDash(
            "who:N", legend=None, scale=alt.Scale(domain=[PREDICTED, PUBLISHED], range=[[1, 0], [5, 4]])
        )
    )
    points = base.mark_circle(size=70).encode(
        tooltip=[
            alt.Tooltip("who:N", title="Who"),
            alt.Tooltip("batch:O", title="Batch"),
            alt.Tooltip("relative:Q", title="Of the smallest", format=".0%"),
            alt.Tooltip("seconds:Q", title="Seconds per epoch", format=".3~g"),
        ]
    )
    words = alt.value(chart_style.ink())
    # The paper's labels stand below its line and ours above, and an unseen point above all keeps both off the legend.
    below = (
        base.transform_filter(alt.datum.who == PUBLISHED)
        .mark_text(dy=16, fontSize=12)
        .encode(text=alt.Text("label:N"), color=words)
    )
    above = (
        base.transform_filter(alt.datum.who == PREDICTED)
        .mark_text(dy=-12, fontSize=12)
        .encode(text=alt.Text("label:N"), color=words)
    )
    room = base.transform_calculate(relative=f"datum.relative * {ROOM}").mark_point(opacity=0)
    title = "Time of an epoch by batch size, as predicted and as published"
    return layered(frame, lines, points, below, above, room, title=title, height=height)


def by_devices(frame: pd.DataFrame, height: int = 300) -> alt.LayerChart:
    """Seconds per epoch over the number of cores, stacked by what they go to. `frame`: see `tpu_frames`."""
    order = list(PARTS)
    bars = (
        alt.Chart()
        .transform_calculate(place=f"indexof({order}, datum.part)")
        .mark_bar(size=34)
        .encode(
            x=alt.X("devices:O", title="Cores", axis=alt.Axis(labelAngle=0, grid=False)),
            y=alt.Y("seconds:Q", title="Predicted seconds per epoch", stack=True),
            color=alt.Color(
                "part:N",
                title=None,
                legend=legend(),
                scale=alt.Scale(
                    domain=order,
                    range=[palette.RUNS[0], palette.WORK["gradient_all_reduce"], palette.WAITING],
                ),
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
        alt.Chart()
        .mark_text(dy=-8, color=chart_style.ink())
        .encode(x=alt.X("devices:O"), y=alt.Y("max(total):Q"), text=alt.Text("max(total):Q", format=".3~g"))
    )
    room = (
        alt.Chart()
        .transform_calculate(top=f"datum.total * {ROOM}")
        .mark_point(opacity=0)
        .encode(x=alt.X("devices:O"), y=alt.Y("top:Q"))
    )
    title = "Predicted seconds per epoch by number of cores"
    return layered(frame, bars, text, room, title=title, height=height)
