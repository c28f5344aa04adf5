"""The paper's figures, drawn from stored runs, among them the descent path on the loss surface.

A frame in, an altair chart out.
"""

from __future__ import annotations

from typing import cast

import altair as alt
import numpy as np
import pandas as pd
from contourpy import contour_generator
from numpy.typing import NDArray

from dashboard import charts, palette
from dashboard.charts import PLAIN_LABELS, heading, layered, legend

SMOOTHED = 9


def epoch_lines(frame: pd.DataFrame, colors: dict[str, str], height: int = 360) -> alt.Chart:
    """Fig. 6: training seconds of each epoch, a line for each run.

    `frame`: variant, run_id, epoch, seconds.
    """
    chart = (
        alt.Chart(frame)
        .mark_line(point=alt.OverlayMarkDef(size=22), strokeWidth=1.6)
        .encode(
            x=alt.X("epoch:Q", title="Epoch", axis=alt.Axis(tickMinStep=1, grid=False, format="d")),
            y=alt.Y(
                "seconds:Q", title="Training time of the epoch (s)", scale=alt.Scale(zero=True)
            ),
            color=_variants(colors),
            detail=alt.Detail("run_id:N"),
            tooltip=[
                alt.Tooltip("variant:N", title="Variant"),
                alt.Tooltip("epoch:Q", title="Epoch", format="d"),
                alt.Tooltip("seconds:Q", title="Seconds", format=".2f"),
            ],
        )
    )
    description = (
        "Training seconds of each epoch, a line for each run in the color of its variant. Flat"
        " lines are a steady speed; their heights compare variants."
    )
    title = "Training time of each epoch"
    return cast(alt.Chart, chart.properties(title=title, description=description, height=height))


def smooth_lines(
    frame: pd.DataFrame,
    colors: dict[str, str],
    title: str,
    axis: str,
    smoothed: int = SMOOTHED,
    height: int = 320,
) -> alt.LayerChart:
    """Figs. 7, 9, 10: a metric of the variants over epochs, faint as measured, and bold as the mean
    of `smoothed` points.

    `frame`: variant, x, low, mean, high, epoch.
    """
    base = alt.Chart().encode(
        x=alt.X(
            "x:Q",
            title="Epoch",
            axis=alt.Axis(tickMinStep=1, grid=False),
            scale=alt.Scale(nice=False),
        ),
        color=_variants(colors),
    )
    raw = base.mark_line(opacity=0.25, strokeWidth=1).encode(
        y=alt.Y("mean:Q", title=axis, scale=alt.Scale(zero=False))
    )
    bold = (
        base.transform_window(
            smoothed="mean(mean)",
            frame=[1 - smoothed, 0],
            groupby=["variant"],
            sort=[alt.SortField("x")],
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
    description = (
        "Each variant over the epochs: faint as measured, bold smoothed. Compare the bold lines,"
        " and how much the faint ones vary."
    )
    return layered(
        frame,
        *(raw, bold, reader.add_params(zoom)),
        title=title,
        description=description,
        height=height,
        usermeta=canvas,
    )


def _variants(colors: dict[str, str]) -> alt.Color:
    scale = alt.Scale(domain=list(colors), range=list(colors.values()))
    return alt.Color("variant:N", title=None, legend=legend(), scale=scale)


LEVELS = (11, 7, 4, 2)  # numbers of contours; fewer on a surface too rough to draw all
MOST_LINE_POINTS = 900  # with 441 cells and 60 snapshots, fewer than 1,500 marks


def surface_cells(x: list[float], y: list[float], loss: NDArray[np.float64]) -> pd.DataFrame:
    """A rectangle around each point of the grid.

    Columns: left, right, low, high, x, y, loss. `loss`: (len(y), len(x)).
    """
    half_x, half_y = (x[1] - x[0]) / 2, (y[1] - y[0]) / 2
    across, up = np.meshgrid(x, y)
    cells = pd.DataFrame({"x": across.ravel(), "y": up.ravel(), "loss": np.ravel(loss)})
    return cells.assign(
        left=cells["x"] - half_x,
        right=cells["x"] + half_x,
        low=cells["y"] - half_y,
        high=cells["y"] + half_y,
    )


def contour_lines(x: list[float], y: list[float], loss: NDArray[np.float64]) -> pd.DataFrame:
    """Contours of the loss, at levels in equal ratios.

    Columns: line, order, x, y, loss. Empty for a flat surface.
    """
    lowest, highest = float(np.min(loss)), float(np.max(loss))
    columns = ["line", "order", "x", "y", "loss"]
    if not 0 < lowest < highest:
        return pd.DataFrame(columns=columns)
    generator = contour_generator(x, y, loss)
    for count in LEVELS:
        levels = np.geomspace(lowest, highest, count + 2)[1:-1]
        lines = [(level, points) for level in levels for points in generator.lines(level)]
        if sum(len(points) for _, points in lines) <= MOST_LINE_POINTS:
            break
    rows = [
        (line, order, px, py, level)
        for line, (level, points) in enumerate(lines)
        for order, (px, py) in enumerate(points)
    ]
    return pd.DataFrame(rows[:MOST_LINE_POINTS], columns=columns)


def named_path(
    epochs: list[int], x: list[float], y: list[float], loss: list[float]
) -> pd.DataFrame:
    """The path with labels at its two ends, each on the free side of the path.

    Columns: epoch, x, y, loss, label, side.
    """
    label, side = [""] * len(epochs), [""] * len(epochs)
    for name, end, next_to_it in (("start", 0, 1), ("end", -1, -2)):
        label[end], side[end] = name, "above" if y[end] >= y[next_to_it] else "below"
    return pd.DataFrame(
        {"epoch": epochs, "x": x, "y": y, "loss": loss, "label": label, "side": side}
    )


def descent(
    cells: pd.DataFrame,
    lines: pd.DataFrame,
    path: pd.DataFrame,
    title: str,
    subtitle: str,
    color: str,
    height: int = 380,
) -> alt.LayerChart:
    """The path in the network's color on a map that is darker for a higher loss.

    `path`: see `named_path`.
    """
    description = (
        "The path of the weights over a map of the loss, in the plane of largest movement. A path"
        " into lighter areas descends."
    )
    layers = (*_map(lines), *_walk(path, color))
    return layered(
        cells, *layers, title=heading(title, subtitle), description=description, height=height
    )


def _map(lines: pd.DataFrame) -> tuple[alt.Chart, alt.Chart]:
    """The loss over the cells, whose rows the whole chart has, and its contours."""
    axis = alt.Axis(grid=False, labelExpr=PLAIN_LABELS, tickCount=6)
    plain = alt.Scale(zero=False, nice=False)
    shade = alt.Chart().mark_rect(fill=palette.NEUTRAL, stroke=None)
    contours = alt.Chart(lines).mark_line(color=palette.NEUTRAL, strokeWidth=0.8, opacity=0.8)
    return (
        shade.encode(
            x=alt.X("left:Q", title="Change along the first direction", axis=axis, scale=plain),
            x2=alt.X2("right:Q"),
            y=alt.Y("low:Q", title="Change along the second direction", axis=axis, scale=plain),
            y2=alt.Y2("high:Q"),
            fillOpacity=alt.FillOpacity(
                "loss:Q", scale=alt.Scale(type="log", range=[0.03, 0.6]), legend=None
            ),
            tooltip=[alt.Tooltip("loss:Q", title="Loss here", format=".3~g")],
        ),
        contours.encode(
            x=alt.X("x:Q"), y=alt.Y("y:Q"), detail=alt.Detail("line:N"), order=alt.Order("order:Q")
        ),
    )


def _walk(path: pd.DataFrame, color: str) -> tuple[alt.Chart, ...]:
    """The path, a dot after each epoch, and the labels of its two ends."""
    way = alt.Chart(path).encode(x=alt.X("x:Q"), y=alt.Y("y:Q"))
    tooltip = [
        alt.Tooltip("epoch:Q", title="After epoch", format="d"),
        alt.Tooltip("loss:Q", title="Loss at this point", format=".3~g"),
    ]
    ends = (
        way.transform_filter(f"datum.side == '{side}'")
        .mark_text(dy=dy, fontSize=12, fontWeight="bold", color=charts.ink())
        .encode(text=alt.Text("label:N"))
        for side, dy in (("above", -13), ("below", 15))
    )
    return (
        way.mark_line(color=color, strokeWidth=2.2).encode(order=alt.Order("epoch:Q")),
        way.mark_circle(color=color, size=42, opacity=1).encode(tooltip=tooltip),
        *ends,
    )
