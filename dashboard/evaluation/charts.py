"""Charts of any evaluation: scores against their floor, scores over epochs.

A frame in, an Altair chart out.
"""

from __future__ import annotations

import math

import altair as alt
import pandas as pd

from dashboard import palette
from dashboard.charts import (
    PLAIN_LABELS,
    drawn_on_log,
    fitted_legend,
    heading,
    ink,
    layered,
    legend,
    legend_rows,
    log_axis,
    scale_of,
)
from gan_runtime.base.metrics import Metric

NAMES = (2, 130)  # legend columns, pixels of the longest name, in a third of the page
WIDE = (4, 220)  # the same in a chart as wide as the page
MOST_STEPS = 6  # of a logarithmic axis
ROW, AROUND, LEGEND = 21, 148, 18  # pixels: a row of `against`, the space around, a legend row
MOST_DECADES = 3  # shown below the reference


def against(
    rows: pd.DataFrame, marks: pd.DataFrame, colors: dict[str, str], reference: str
) -> alt.LayerChart:
    """How many times worse than its reference each score is, with error bars.

    `rows`: series, score, value, base (in words), ratio, low, high; `marks`: name, score, value,
    ratio of other predictions. `reference`: in words.
    """
    order = list(dict.fromkeys(rows["score"]))
    low, high = _ends(pd.concat([rows["ratio"], marks["ratio"]]) if len(marks) else rows["ratio"])
    scale = alt.Scale(type="log", domain=[low, high], nice=False, clamp=True)
    axis = alt.Axis(
        format="~r", values=_powers(low, high), labelExpr="format(datum.value, ',~r') + ' ×'"
    )
    x = alt.X("ratio:Q", title=f"Times worse than {reference} (log)", scale=scale, axis=axis)
    y = alt.Y(
        "score:N",
        title=None,
        sort=order,
        axis=alt.Axis(labelLimit=260, labelOverlap=False, grid=True, ticks=False),
    )
    color = alt.Color("series:N", title=None, legend=fitted_legend(colors), scale=scale_of(colors))
    many = len(colors) > 1
    base = alt.Chart().encode(y=y, color=color)
    offset = {"yOffset": alt.YOffset("series:N", sort=list(colors))} if many else {}
    tooltip = [
        alt.Tooltip("series:N", title="Of"),
        alt.Tooltip("score:N", title="Score"),
        alt.Tooltip("value:N", title="Value"),
        alt.Tooltip("base:N", title=f"{reference[:1].upper()}{reference[1:]}"),
        alt.Tooltip("ratio:Q", title="Times", format=".3~g"),
    ]
    bars = base.mark_rule(strokeWidth=2, opacity=0.6).encode(
        x=alt.X("low:Q", scale=scale), x2=alt.X2("high:Q"), **offset
    )
    points = base.mark_circle(size=90 if not many else 60, opacity=1).encode(
        x=x, tooltip=tooltip, **offset
    )
    line = (
        alt.Chart(pd.DataFrame({"at": [1.0]}))
        .mark_rule(strokeWidth=2, strokeDash=[5, 4], color=palette.REAL)
        .encode(x=alt.X("at:Q", scale=scale))
    )
    layers = [line, bars, points]
    if len(marks):
        layers.append(_baseline_marks(marks, y, scale))
    height = AROUND + LEGEND * legend_rows(colors) + len(order) * ROW
    title = heading(
        f"How far is each score from {reference}?", "Left of the dashed line is better."
    )
    description = (
        f"How many times worse than {reference} each score is, with error bars. Left of the dashed"
        " line is better."
    )
    return layered(rows, *layers, title=title, description=description, height=height)


def _baseline_marks(marks: pd.DataFrame, y: alt.Y, scale: alt.Scale) -> alt.Chart:
    tooltip = [
        alt.Tooltip("name:N", title="Of"),
        alt.Tooltip("score:N", title="Score"),
        alt.Tooltip("value:N", title="Value"),
        alt.Tooltip("ratio:Q", title="Times", format=".3~g"),
    ]
    shape = alt.Shape(
        "name:N",
        title=None,
        legend=legend(*WIDE),
        scale=alt.Scale(range=["diamond", "square", "triangle"]),
    )
    return (
        alt.Chart(marks)
        .mark_point(size=60, color=ink(), filled=False)
        .encode(x=alt.X("ratio:Q", scale=scale), y=y, shape=shape, tooltip=tooltip)
    )


def _ends(ratios: pd.Series[float]) -> tuple[float, float]:
    """The ends of the axis: all ratios and 1, with some room, down to MOST_DECADES below 1."""
    low = max(min(float(ratios.min()), 1.0), 10.0**-MOST_DECADES)
    high = max(float(ratios.max()), 1.0)
    room = max(1.15, (high / low) ** 0.04)
    return low / room, high * room


def _powers(low: float, high: float) -> list[float]:
    """Powers of ten between the ends, with further multiples of each if they are few."""
    powers = [
        10.0**power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ]
    for multiples in ((1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 7.0), (1.0, 2.0, 5.0)):
        every = [times * power for power in powers for times in multiples]
        steps = [step for step in every if low <= step <= high]
        if len(steps) <= 2 * MOST_STEPS:
            return steps
    return [power for power in powers if low <= power <= high]


def over_epochs(
    frame: pd.DataFrame, metric: Metric, colors: dict[str, str], height: int = 320
) -> alt.LayerChart:
    """A score of each run over the measured epochs, with error bars, and its dashed floor.

    `frame`: series, epoch, value, low, high, floor.
    """
    x = alt.X(
        "epoch:Q",
        title="Epoch",
        axis=alt.Axis(grid=False, format="d", tickMinStep=1),
        scale=alt.Scale(zero=False, nice=False, padding=12),
    )
    values = pd.concat([frame["value"], frame["floor"]]).dropna()
    is_log = bool(len(values)) and bool((values > 0).all())  # a floor may be negative
    scale = alt.Scale(type="log" if is_log else "linear", nice=False, zero=False, padding=10)
    is_share = metric.format.endswith("%")
    axis = alt.Axis(labelExpr=PLAIN_LABELS, tickCount=5)
    if is_log:
        axis = log_axis(".3~%" if is_share else ",.3~r")
    elif is_share:
        axis = alt.Axis(format=".3~%", tickCount=5)
    y = alt.Y("value:Q", title=metric.axis, scale=scale, axis=axis)
    color = alt.Color("series:N", title=None, legend=legend(*NAMES), scale=scale_of(colors))
    tooltip = [
        alt.Tooltip("series:N", title="Run"),
        alt.Tooltip("epoch:Q", title="Epoch", format="d"),
        alt.Tooltip("value:Q", title=metric.axis, format=".3~g"),
        alt.Tooltip("low:Q", title="Lower end of the bar", format=".3~g"),
        alt.Tooltip("high:Q", title="Upper end of the bar", format=".3~g"),
        alt.Tooltip("floor:Q", title="Real against real", format=".3~g"),
    ]
    rows = frame.assign(drawn_low=drawn_on_log(frame["low"], values) if is_log else frame["low"])
    base = alt.Chart().encode(x=x)
    bars = base.mark_rule(strokeWidth=1.5, opacity=0.7).encode(
        y=alt.Y("drawn_low:Q", scale=scale), y2=alt.Y2("high:Q"), color=color
    )
    line = base.mark_line(point=alt.OverlayMarkDef(size=50), strokeWidth=2).encode(
        y=y, color=color, tooltip=tooltip
    )
    floor = base.mark_line(strokeDash=[4, 4], opacity=0.8).encode(
        y=alt.Y("floor:Q", scale=scale), color=color, detail="series:N"
    )
    layers = (bars, line, floor) if frame["floor"].notna().any() else (bars, line)
    description = (
        f"{metric.title} over the measured epochs, with error bars. Dashed: the score of real data."
    )
    return layered(
        rows, *layers, title=heading(metric.title), description=description, height=height
    )


def lines(rows: pd.DataFrame, title: str, height: int = 280) -> alt.LayerChart:
    """A curve of any evaluation, with a line for each series.

    `rows`: series, x, y (of a path, else NaN), value, error.
    """
    is_path = bool(rows["y"].notna().all())
    up = "y" if is_path else "value"
    names = list(dict.fromkeys(rows["series"]))
    colors = dict(zip(names, _series_colors(names), strict=True))
    frame = rows.assign(
        place=range(len(rows)),
        low=rows["value"] - rows["error"],
        high=rows["value"] + rows["error"],
    )
    frame = frame[frame["series"] == names[0]] if is_path else frame
    color = alt.Color("series:N", title=None, legend=legend(*WIDE), scale=scale_of(colors))
    base = alt.Chart().encode(
        x=alt.X(
            "x:Q", title=None, scale=alt.Scale(zero=False, nice=False), axis=alt.Axis(grid=False)
        ),
        color=color,
    )
    tooltip = [
        alt.Tooltip("series:N", title="Of"),
        alt.Tooltip("x:Q", format=".4~g"),
        alt.Tooltip(f"{up}:Q", title="Value", format=".4~g"),
    ]
    y = alt.Y(f"{up}:Q", title=None, scale=alt.Scale(zero=False))
    line = base.mark_line(point=is_path, strokeWidth=2).encode(
        y=y, order="place:Q", tooltip=tooltip
    )
    band = base.mark_area(opacity=0.25, line=False).encode(y=alt.Y("low:Q"), y2=alt.Y2("high:Q"))
    layers = [line] if is_path else [band, line]
    description = (
        f"{title[:1].upper()}{title[1:]}, a line for each series. Bands are one standard deviation,"
        " where it is known."
    )
    return layered(frame, *layers, title=heading(title), description=description, height=height)


def _series_colors(names: list[str]) -> list[str]:
    line_colors = iter(color for color in palette.LINES * (1 + len(names) // len(palette.LINES)))
    return [palette.SIDES.get(name) or next(line_colors) for name in names]


def heat_map(rows: pd.DataFrame, title: str, height: int = 320) -> alt.Chart:
    """A map of any evaluation: a rectangle for each place of a regular grid.

    `rows`: x, y, value.
    """
    ends: dict[str, pd.Series[float]] = {}
    for axis in ("x", "y"):
        places = sorted(rows[axis].unique())
        half = (places[-1] - places[0]) / max(1, len(places) - 1) / 2.0 or 0.5
        ends |= {f"{axis}_low": rows[axis] - 1.01 * half, f"{axis}_high": rows[axis] + 1.01 * half}
    x, y = (
        encoding(
            f"{axis}_low:Q",
            title=None,
            scale=alt.Scale(zero=False, nice=False),
            axis=alt.Axis(grid=False),
        )
        for encoding, axis in ((alt.X, "x"), (alt.Y, "y"))
    )
    color = alt.Color(
        "value:Q", title=None, scale=alt.Scale(scheme="viridis"), legend=alt.Legend(format=".3~g")
    )
    tooltip = [alt.Tooltip(f"{axis}:Q", format=".3~g") for axis in ("x", "y", "value")]
    cells = alt.Chart(rows.assign(**ends)).mark_rect()
    return cells.encode(
        x=x, x2=alt.X2("x_high:Q"), y=y, y2=alt.Y2("y_high:Q"), color=color, tooltip=tooltip
    ).properties(
        title=heading(title),
        description=(
            f"{title[:1].upper()}{title[1:]} as a map. The scale shows the value of each color."
        ),
        height=height,
    )
