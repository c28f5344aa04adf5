"""Charts of the Compare page: curves, a result against time, parallel coordinates.

A frame in, an altair Chart out, no Streamlit.

A click on a curve, a point or a line selects its run in the parameter `PICK`; the field `run` is
its name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import altair as alt
import pandas as pd

from dashboard import charts, palette
from dashboard.compare import results as compare_results
from dashboard.compare.results import Result
from gan_runtime.base.metrics import Metric

PICK = "pick"
X_TITLES = {
    "step": "Step",
    "epoch": "Epoch",
    "images": "Images seen",
    "wall_s": "Training time (s)",
    "device_s": "Device time (s)",
}
Smoothing = Literal["none", "light", "strong"]
YScale = Literal["auto", "linear", "log"]
# Share of a curve's points that a smoothed one averages.
SMOOTHED_SHARES: dict[Smoothing, float] = {"none": 0.0, "light": 0.02, "strong": 0.1}
FADED = 0.15  # opacity of runs that are not picked


@dataclass(frozen=True)
class CurveStyle:
    """How curves are drawn; `y` "auto" takes the declared scale of the metric."""

    smoothing: Smoothing = "light"
    y: YScale = "auto"


def run_curves(
    frame: pd.DataFrame,
    colors: dict[str, str],
    x: str,
    metric: Metric,
    style: CurveStyle,
    height: int = 310,
) -> alt.LayerChart:
    """One metric of several runs.

    `frame`: as `queries.curves`, with a column `run` of names.

    `colors`: name → color. Numbers of an epoch are not smoothed and have dots.
    """
    tooltip = [
        alt.Tooltip("run:N", title="Run"),
        alt.Tooltip("step:Q", title="Step", format=",d"),
        alt.Tooltip("epoch:Q", title="Epoch", format="d"),
        alt.Tooltip("mean:Q", title="Value", format=metric.format),
    ]
    return _overlaid(frame, colors, x, metric, style, tooltip, height, dots=metric.per_epoch)


def group_curves(
    frame: pd.DataFrame,
    colors: dict[str, str],
    x: str,
    metric: Metric,
    style: CurveStyle,
    height: int = 310,
) -> alt.LayerChart:
    """One metric of groups of runs: mean and band.

    `frame`: as `queries.group_curves`; otherwise as `run_curves`.
    """
    tooltip = [
        alt.Tooltip("run:N", title="Group"),
        alt.Tooltip("x:Q", title=X_TITLES[x], format=",.4~g"),
        alt.Tooltip("mean:Q", title="Mean", format=metric.format),
        alt.Tooltip("low:Q", title="Lowest run", format=metric.format),
        alt.Tooltip("high:Q", title="Highest run", format=metric.format),
        alt.Tooltip("runs:Q", title="Runs here", format="d"),
    ]
    return _overlaid(frame, colors, x, metric, style, tooltip, height, dots=False)


def drawable(frame: pd.DataFrame, metric: Metric, y: YScale) -> pd.DataFrame:
    """The rows with a place on the axis, and in `drawn_low` where their bands begin: a logarithm
    has no place for 0 and below.
    """
    if not _is_log(metric, y):
        return frame.assign(drawn_low=frame["low"])
    rows = frame[frame["mean"] > 0]
    return rows.assign(drawn_low=charts.drawn_on_log(rows["low"], rows["mean"]))


def _is_log(metric: Metric, y: YScale) -> bool:
    return metric.log if y == "auto" else y == "log"


def _overlaid(
    frame: pd.DataFrame,
    colors: dict[str, str],
    x: str,
    metric: Metric,
    style: CurveStyle,
    tooltip: list[alt.Tooltip],
    height: int,
    dots: bool,
) -> alt.LayerChart:
    """Band, raw line faint, smoothed line bold, and an invisible layer for clicks and tooltips."""
    log = _is_log(metric, style.y)
    pick = alt.selection_point(name=PICK, fields=["run"])
    base = alt.Chart().encode(
        x=alt.X("x:Q", title=X_TITLES[x], axis=_x_axis(x), scale=alt.Scale(zero=False, nice=False)),
        color=color_of("run", colors),
    )
    y_title = _y_title(metric.axis.removesuffix(" (log)"), log)
    y_scale = alt.Scale(type="log", nice=False) if log else alt.Scale(zero=False)
    axis = charts.log_axis() if log else alt.Axis()

    def y(field: str) -> alt.Y:
        return alt.Y(f"{field}:Q", title=y_title, scale=y_scale, axis=axis)

    def opacity(full: float) -> alt.OpacityValue:
        return unless_picked(pick, full, full * FADED)

    share = 0.0 if metric.per_epoch else SMOOTHED_SHARES[style.smoothing]
    band = base.mark_area(line=False).encode(
        y=y("drawn_low"), y2=alt.Y2("high:Q"), opacity=opacity(0.14)
    )
    # A single epoch has no area.
    single = base.transform_joinaggregate(points="count()", groupby=["run"])
    bars = (
        single.transform_filter("datum.points == 1")
        .mark_rule(strokeWidth=1.5)
        .encode(y=y("drawn_low"), y2=alt.Y2("high:Q"), opacity=opacity(0.4))
    )
    raw = base.mark_line(strokeWidth=1).encode(y=y("mean"), opacity=opacity(0.35 if share else 0.0))
    bold = base.mark_line(strokeWidth=2.5).encode(
        y=y("smoothed"), opacity=opacity(1.0), strokeDash=charts.dash_of("run", colors)
    )
    points = base.mark_circle(size=60, opacity=1) if dots else base.mark_circle(size=90, opacity=0)
    reader = points.encode(y=y("mean"), tooltip=tooltip).add_params(charts.drag(), pick)
    description = (
        f"{metric.title} of each run: faint as measured, bold smoothed. Compare the bold lines:"
        " single steps scatter."
    )
    layers = (charts.ground(), band, *([bars] if dots else []), raw, bold, reader)
    rows = drawable(frame, metric, style.y)
    rows = charts.with_smoothed(rows, charts.smoothed_points(share, _longest(rows)), "run")
    return on_canvas(rows, *layers, title=metric.title, description=description, height=height)


def _y_title(title: str, log: bool) -> str:
    """The axis title names a logarithmic scale: "Loss (nats, log)"."""
    if not log:
        return title
    return f"{title[:-1]}, log)" if title.endswith(")") else f"{title} (log)"


def color_of(field: str, colors: dict[str, str]) -> alt.Color:
    """Name → color.

    One legend serves all charts of the page and wraps for many runs.
    """
    return alt.Color(
        f"{field}:N", legend=None, scale=alt.Scale(domain=list(colors), range=list(colors.values()))
    )


def _x_axis(x: str) -> alt.Axis:
    number = ",d" if x in ("step", "images") else alt.Undefined
    least = 1 if x in ("step", "images", "epoch") else alt.Undefined
    return alt.Axis(tickMinStep=least, tickCount=10, grid=False, format=number)


def _longest(frame: pd.DataFrame) -> int:
    """The number of points of the longest curve; 0 without any."""
    return int(frame.groupby("run").size().max()) if len(frame) else 0


def unless_picked(pick: alt.Parameter, full: float, faded: float) -> alt.OpacityValue:
    """Full for all while nothing is picked, else only for the picked run."""
    return alt.OpacityValue(**alt.when(pick).then(alt.value(full)).otherwise(alt.value(faded)))


def on_canvas(rows: pd.DataFrame, *layers: alt.Chart, **properties: Any) -> alt.LayerChart:
    """A layered chart on a canvas, whatever the number of marks: another renderer would embed it
    again.
    """
    return charts.layered(
        rows, *layers, usermeta={"embedOptions": {"renderer": "canvas"}}, **properties
    )


HEIGHT = 320
HEADING, ROW = 60, 62  # pixels of the title, and of each axis of parallel coordinates


def scatter(
    frame: pd.DataFrame, front: pd.DataFrame, colors: dict[str, str], result: Result, value: str
) -> alt.LayerChart:
    """A result of each run against its training seconds, with the Pareto front as a line.

    `frame`: columns run, series (for the color), seconds, text and `value`; `front`: the same,
    fastest first.
    """
    x = alt.X(
        "seconds:Q",
        title="Training time (s)",
        axis=alt.Axis(grid=False),
        scale=alt.Scale(domainMin=0),
    )
    y_axis = alt.Axis(format="%") if result.format.endswith("%") else alt.Axis()
    y = alt.Y(f"{value}:Q", title=result.axis, scale=alt.Scale(zero=False, padding=16), axis=y_axis)
    dashed = alt.Chart(front).mark_line(
        interpolate="step-after", color=palette.NEUTRAL, strokeDash=[5, 4]
    )
    points = _run_points(colors, result)
    layers = (dashed.encode(x=x, y=y), points.encode(x=x, y=y))
    title = alt.Title(f"{result.title} against training time", subtitle=_subtitle(result))
    description = (
        f"{result.title} of each run as a point over its training time. No run is both faster and"
        " better than a run on the dashed line."
    )
    rows = _with_front(frame, front, colors)
    return on_canvas(rows, *layers, title=title, description=description, height=HEIGHT)


def _with_front(frame: pd.DataFrame, front: pd.DataFrame, colors: dict[str, str]) -> pd.DataFrame:
    """With the columns `on_front`, in words, and `hollow`, where another series has the color."""
    return frame.assign(
        on_front=frame["run"]
        .isin(front["run"])
        .map({True: "on it", False: "another run is better" if len(front) else "none"}),
        hollow=frame["series"].isin(palette.repeated(colors)),
    )


def _run_points(colors: dict[str, str], result: Result) -> alt.Chart:
    """A point for each run, hollow where another series has its color."""
    pick = alt.selection_point(name=PICK, fields=["run"])
    outline = alt.Scale(domain=list(colors), range=list(colors.values()))
    hollow = alt.when("datum.hollow").then(alt.value(0)).otherwise(alt.value(1))
    points = alt.Chart().mark_circle(size=190, strokeWidth=3).add_params(pick)
    return points.encode(
        color=color_of("series", colors),
        stroke=alt.Stroke("series:N", legend=None, scale=outline),
        fillOpacity=alt.FillOpacityValue(**hollow),
        opacity=unless_picked(pick, 1.0, 0.25),
        tooltip=[
            alt.Tooltip("run:N", title="Run"),
            alt.Tooltip("seconds:Q", title="Training time (s)", format=",.1f"),
            alt.Tooltip("text:N", title=result.axis),
            alt.Tooltip("on_front:N", title="Pareto front"),
        ],
    )


def parallel(
    crossings: pd.DataFrame, ticks: pd.DataFrame, colors: dict[str, str]
) -> alt.LayerChart:
    """A line for each run across the axes. The axes lie below each other, so that their names and
    values fit on any screen.

    The frames: as `results.crossings`, with a column `series`, and as `results.ticks`.
    """
    pick = alt.selection_point(name=PICK, fields=["run"])
    order = list(dict.fromkeys(crossings["axis"]))
    x = alt.X("place:Q", title=None, axis=None, scale=alt.Scale(domain=[0, 1]))
    y = alt.Y(
        "axis:N", title=None, sort=order, axis=None, scale=alt.Scale(type="point", padding=0.5)
    )
    base = alt.Chart().encode(
        x=x, y=y, color=color_of("series", colors), detail=alt.Detail("run:N")
    )
    faded = unless_picked(pick, 0.9, 0.12)
    dash = charts.dash_of("series", colors)
    down = alt.Order("row:Q")
    lines = base.mark_line(strokeWidth=2.5).encode(
        opacity=faded, strokeDash=dash, order=down, tooltip=alt.Tooltip("run:N", title="Run")
    )
    tooltip = [
        alt.Tooltip("run:N", title="Run"),
        alt.Tooltip("axis:N", title="Axis"),
        alt.Tooltip("text:N", title="Value"),
    ]
    points = base.mark_circle(size=80).encode(opacity=faded, tooltip=tooltip).add_params(pick)
    ends = pd.DataFrame([{"axis": name, "place": 0.0, "end": 1.0} for name in order])
    rules = (
        alt.Chart(ends)
        .mark_rule(color=palette.NEUTRAL, opacity=0.5)
        .encode(x=x, y=y, x2=alt.X2("end:Q"))
    )
    names = alt.Chart(ends).mark_text(
        align="left", dy=-14, fontSize=12, fontWeight=600, color=charts.ink()
    )
    values = [
        alt.Chart(ticks[ticks["align"] == side])
        .mark_text(align=side, dy=15, color=charts.ink(), fontSize=12)
        .encode(x=x, y=y, text=alt.Text("text:N"))
        for side in compare_results.SIDES
    ]
    title = alt.Title(
        "Which options lead where?", subtitle="One line per run; every axis has its own scale."
    )
    layers = (rules, lines, points, names.encode(x=x, y=y, text=alt.Text("axis:N")), *values)
    description = (
        "A line for each run across its options and results, each with its own scale. Where lines"
        " part at an option, that option may have made the difference."
    )
    height = HEADING + ROW * len(order)
    return on_canvas(crossings, *layers, title=title, description=description, height=height)


def _subtitle(result: Result) -> str:
    if result.best == "none":
        return "A better value does not mean better images, so there is no Pareto front."
    better = {"lowest": "Lower", "highest": "Higher"}[result.best]
    return f"{better} is better. Dashed: no run is both faster and better (Pareto front)."
