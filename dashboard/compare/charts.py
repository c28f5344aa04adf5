"""Charts of the Compare page. As charts.py: a frame in, an altair Chart out, no Streamlit.

A click on a curve or a point selects its run in the parameter `PICK`: the field `run` holds the name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import altair as alt
import pandas as pd

from dashboard import charts, smoothing
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
SMOOTHED_SHARES: dict[Smoothing, float] = {"none": 0.0, "light": 0.02, "strong": 0.1}  # of a curve's points
FADED = 0.15  # what is not picked


@dataclass(frozen=True)
class Look:
    """How curves are drawn; `y` "auto" takes the scale that fits the metric."""

    smoothing: Smoothing = "light"
    y: YScale = "auto"


def run_curves(
    frame: pd.DataFrame, colors: dict[str, str], x: str, metric: Metric, look: Look, height: int = 310
) -> alt.LayerChart:
    """One metric of several runs. `frame`: as `queries.curves`, and a column `run` with their names.

    `colors`: name → colour. What is measured once an epoch is not smoothed and has its points drawn.
    """
    tooltip = [
        alt.Tooltip("run:N", title="Run"),
        alt.Tooltip("step:Q", title="Step", format=",d"),
        alt.Tooltip("epoch:Q", title="Epoch", format="d"),
        alt.Tooltip("mean:Q", title="Value", format=metric.format),
    ]
    return _overlaid(frame, colors, x, metric, look, tooltip, height, dots=metric.per_epoch)


def group_curves(
    frame: pd.DataFrame, colors: dict[str, str], x: str, metric: Metric, look: Look, height: int = 310
) -> alt.LayerChart:
    """One metric of groups of runs, mean and band. `frame`: as `queries.group_curves`; otherwise as `run_curves`."""
    tooltip = [
        alt.Tooltip("run:N", title="Group"),
        alt.Tooltip("x:Q", title=X_TITLES[x], format=",.4~g"),
        alt.Tooltip("mean:Q", title="Mean", format=metric.format),
        alt.Tooltip("low:Q", title="Lowest run", format=metric.format),
        alt.Tooltip("high:Q", title="Highest run", format=metric.format),
        alt.Tooltip("runs:Q", title="Runs here", format="d"),
    ]
    return _overlaid(frame, colors, x, metric, look, tooltip, height, dots=False)


def drawable(frame: pd.DataFrame, metric: Metric, y: YScale) -> pd.DataFrame:
    """The rows that have a place on the axis: a logarithm has none for 0 and below."""
    return frame[frame["low"] > 0] if _is_log(metric, y) else frame


def _is_log(metric: Metric, y: YScale) -> bool:
    return metric.log if y == "auto" else y == "log"


def _overlaid(
    frame: pd.DataFrame,
    colors: dict[str, str],
    x: str,
    metric: Metric,
    look: Look,
    tooltip: list[alt.Tooltip],
    height: int,
    dots: bool,
) -> alt.LayerChart:
    """Band, raw faint, smoothed bold, and what is clicked and pointed at."""
    log = _is_log(metric, look.y)
    pick = alt.selection_point(name=PICK, fields=["run"])
    base = alt.Chart().encode(
        x=alt.X("x:Q", title=X_TITLES[x], axis=_x_axis(x), scale=alt.Scale(zero=False, nice=False)),
        color=color_of("run", colors),
    )
    y_title = _y_title(metric.axis.removesuffix(" (log)"), log)
    y_scale = alt.Scale(type="log") if log else alt.Scale(zero=False)

    def y(field: str) -> alt.Y:
        return alt.Y(f"{field}:Q", title=y_title, scale=y_scale)

    def seen(full: float) -> alt.OpacityValue:
        return unless_picked(pick, full, full * FADED)

    share = 0.0 if metric.per_epoch else SMOOTHED_SHARES[look.smoothing]
    band = base.mark_area(line=False).encode(y=y("low"), y2=alt.Y2("high:Q"), opacity=seen(0.14))
    raw = base.mark_line(strokeWidth=1).encode(y=y("mean"), opacity=seen(0.35 if share else 0.0))
    bold = base.mark_line(strokeWidth=2.5).encode(
        y=y("smoothed"), opacity=seen(1.0), strokeDash=charts.dash_of("run", colors)
    )
    points = base.mark_circle(size=35, opacity=1) if dots else base.mark_circle(size=90, opacity=0)
    reader = points.encode(y=y("mean"), tooltip=tooltip).add_params(charts.drag(), pick)
    what = f"{metric.title} of several runs as lines along {X_TITLES[x]}."
    layers = (charts.ground(), band, raw, bold, reader)
    shown = drawable(frame, metric, look.y)
    rows = smoothing.with_smoothed(shown, smoothing.points_of(share, _longest(shown)), "run")
    return finished(rows, *layers, title=metric.title, description=what, height=height)


def _y_title(title: str, log: bool) -> str:
    """The scale stands beside the unit: "Loss (nats, log)"."""
    if not log:
        return title
    return f"{title[:-1]}, log)" if title.endswith(")") else f"{title} (log)"


def color_of(field: str, colors: dict[str, str]) -> alt.Color:
    """Name → colour. The page has one legend for all charts, which wraps where there are many runs."""
    return alt.Color(
        f"{field}:N", legend=None, scale=alt.Scale(domain=list(colors), range=list(colors.values()))
    )


def _x_axis(x: str) -> alt.Axis:
    number = "~s" if x in ("step", "images") else alt.Undefined
    return alt.Axis(tickMinStep=1, tickCount=10, grid=False, format=number)


def _longest(frame: pd.DataFrame) -> int:
    """How many points the curve with the most has; 0 without any."""
    return int(frame.groupby("run").size().max()) if len(frame) else 0


def unless_picked(pick: alt.Parameter, full: float, faded: float) -> alt.OpacityValue:
    """Full for all while nothing is picked, else for the picked run only."""
    return alt.OpacityValue(**alt.when(pick).then(alt.value(full)).otherwise(alt.value(faded)))


def finished(rows: pd.DataFrame, *layers: alt.Chart, **properties: Any) -> alt.LayerChart:
    """Drawn on a canvas, whatever the number of marks: another renderer would be another embedding."""
    return charts.layered(rows, *layers, usermeta={"embedOptions": {"renderer": "canvas"}}, **properties)
