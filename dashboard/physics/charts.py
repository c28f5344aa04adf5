"""Curves of generated and real showers, and showers from three sides. A frame in, an Altair chart out."""

from __future__ import annotations

import math
from typing import cast

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dashboard import palette
from dashboard.charts import heading, legend, scale_of
from gan_runtime.calorimeter.declared import CurveWords
from gan_runtime.calorimeter.views import View, seen
from gan_runtime.catalog.shower_scores import Score

REAL = "Real showers"
DARK = "#0e0c1e"  # ground of an image of a shower, in light and dark: the first of its colors
_FORMATS = {"profile": "d", "spectrum": ".3~r"}
HALF = 0.51  # of a place in a map, to each side of its middle: without the overlap the ground shows between two of them
MOST_STEPS = 6  # of a logarithmic axis
ENERGIES = (1e-4, 10.0)  # GeV of the first and the last color, as in the pictures of an epoch


def together(frames: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """One row a place and series: curve, x, y, value, low, high, series. `frames`: name of a run → its curves; the real side is that of
    the first run."""
    parts = []
    for place, (name, frame) in enumerate(frames.items()):
        if place == 0:
            parts.append(_side(frame, "real", REAL))
        parts.append(_side(frame, "generated", name))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _side(frame: pd.DataFrame, side: str, series: str) -> pd.DataFrame:
    value, error = frame[side], frame[f"{side}_error"]
    return pd.DataFrame(
        {
            "curve": frame["curve"],
            "x": frame["x"],
            "y": frame["y"],
            "value": value,
            "low": value - error,
            "high": value + error,
            "series": series,
        }
    )


def curve(
    rows: pd.DataFrame, told: CurveWords, colors: dict[str, str], is_log: bool = False, height: int = 270
) -> alt.LayerChart:
    """One curve of all series: a band of one standard deviation around a line. `rows` as `together` gives them, of one curve."""
    log_y = is_log or told.kind == "spectrum"
    shown = rows.assign(low=rows["low"].clip(lower=_least(rows))) if log_y else rows
    shown = shown[shown["value"] > 0] if log_y else shown
    across = alt.X(
        "x:Q",
        title=told.axis,
        axis=alt.Axis(grid=False, format=_FORMATS.get(told.kind, ".3~r"), tickCount=5),
        scale=alt.Scale(type="log") if told.kind == "spectrum" else alt.Scale(zero=False, nice=False),
    )
    upwards = alt.Scale(type="log", nice=False) if log_y else alt.Scale(zero=told.kind != "curve")
    if log_y:
        axis = alt.Axis(format=".3~g", values=_decades(shown))
    else:
        axis = alt.Axis(format="%" if told.kind == "shares" else ".3~r", tickCount=5)
    color = alt.Color("series:N", title=None, legend=legend(), scale=scale_of(colors))
    base = alt.Chart(shown).encode(x=across, color=color)
    line = "linear" if told.kind == "curve" else "step"
    band = base.mark_area(opacity=0.25, line=False, interpolate=line).encode(  # type: ignore[arg-type]
        y=alt.Y("low:Q", title=told.values, scale=upwards, axis=axis), y2="high:Q"
    )
    middle = base.mark_line(strokeWidth=2, interpolate=line).encode(  # type: ignore[arg-type]
        y=alt.Y("value:Q", title=told.values, scale=upwards, axis=axis)
    )
    reader = base.mark_circle(size=70, opacity=0).encode(
        y=alt.Y("value:Q", scale=upwards, axis=axis),
        tooltip=[
            alt.Tooltip("series:N", title="Showers"),
            alt.Tooltip("x:Q", title=told.axis, format=".4~g"),
            alt.Tooltip("value:Q", title=told.values, format=".3~g"),
            alt.Tooltip("low:Q", title="Less one standard deviation", format=".3~g"),
            alt.Tooltip("high:Q", title="More one standard deviation", format=".3~g"),
        ],
    )
    what = f"{told.title} {told.values} over {told.axis.lower()}: {', '.join(colors)}."
    layers = cast(alt.LayerChart, alt.layer(band, middle, reader))
    return layers.properties(title=heading(told.title), description=what, height=height)


def _least(rows: pd.DataFrame) -> float:
    """Where the band ends on a logarithmic axis."""
    positive = rows["value"][rows["value"] > 0]
    return float(positive.min()) / 2.0 if len(positive) else 1e-9


def matrix(own: pd.DataFrame, told: CurveWords, series: str, height: int = 300) -> alt.Chart:
    """(N, N) from -1 to 1, layer by layer. `own`: the rows of `together` of one matrix and series."""
    size = math.isqrt(len(own))
    rows, columns = np.divmod(np.arange(size * size), size)
    frame = pd.DataFrame({"x": columns + 1, "y": rows + 1, "value": own["value"].to_numpy(float)})
    edges = {
        f"{axis}_{end}": frame[axis] + side * HALF
        for axis in "xy"
        for end, side in (("low", -1), ("high", 1))
    }
    x, y = (
        encoding(
            f"{name}:Q",
            title=told.axis,
            scale=alt.Scale(domain=[0.5, size + 0.5], nice=False),
            axis=alt.Axis(values=list(range(5, size + 1, 5)), grid=False, format="d"),
        )
        for encoding, name in ((alt.X, "x_low"), (alt.Y, "y_low"))
    )
    color = alt.Color(
        "value:Q",
        title=told.values,
        scale=alt.Scale(domain=[-1, 1], scheme="purpleorange"),
        legend=alt.Legend(values=[-1, 0, 1]),
    )
    tooltip = [
        alt.Tooltip("x:Q", title=told.axis),
        alt.Tooltip("y:Q", title=told.axis),
        alt.Tooltip("value:Q", title=told.values, format=".2f"),
    ]
    drawn = alt.Chart(frame.assign(**edges)).mark_rect(clip=True)
    return drawn.encode(x=x, x2="x_high:Q", y=y, y2="y_high:Q", color=color, tooltip=tooltip).properties(
        title=heading(series), description=f"{told.title} {series}.", height=height
    )


def angle_map(own: pd.DataFrame, told: CurveWords, series: str, height: int = 300) -> alt.LayerChart:
    """Shares of showers by two angles, in degrees, and dashed where both are equal. `own`: the rows of `together` of one map and series;
    `x` and `y` are the middles of equal places, rad."""
    middles = np.unique(own["x"])
    half = HALF * math.degrees(middles[1] - middles[0])
    filled = own[own["value"] > 0]
    frame = pd.DataFrame(
        {
            f"{axis}_{end}": np.degrees(filled[axis]) + side * half
            for axis in "xy"
            for end, side in (("low", -1), ("high", 1))
        }
    ).assign(share=filled["value"])
    ends = [math.degrees(middles[0]) - half, math.degrees(middles[-1]) + half]
    x, y = (
        encoding(
            f"{name}:Q",
            title=title,
            scale=alt.Scale(domain=ends, nice=False),
            axis=alt.Axis(grid=True, tickCount=5, format="d"),
        )
        for encoding, name, title in ((alt.X, "x_low", told.axis), (alt.Y, "y_low", told.values))
    )
    share = alt.Color(
        "share:Q",
        title="Showers",
        scale=alt.Scale(scheme="viridis", domainMin=0),
        legend=alt.Legend(format="%"),
    )
    places = (
        alt.Chart(frame)
        .mark_rect()
        .encode(
            x=x,
            x2="x_high:Q",
            y=y,
            y2="y_high:Q",
            color=share,
            tooltip=[
                alt.Tooltip("x_low:Q", title=f"{told.axis} from", format=".0f"),
                alt.Tooltip("y_low:Q", title=f"{told.values} from", format=".0f"),
                alt.Tooltip("share:Q", title="Share of the showers", format=".2%"),
            ],
        )
    )
    asked = pd.DataFrame({"x_low": ends, "y_low": ends})
    line = alt.Chart(asked).mark_line(color=palette.REAL, strokeDash=[4, 4], clip=True).encode(x=x, y=y)
    layers = cast(alt.LayerChart, alt.layer(places, line))
    what = f"{told.title} {told.values} over {told.axis.lower()}, {series}."
    return layers.properties(title=heading(series), description=what, height=height)


def over_epochs(
    frame: pd.DataFrame, score: Score, colors: dict[str, str], height: int = 240
) -> alt.LayerChart:
    """A score of each run over the epochs that were measured, with its error, and dashed the floor of real showers. `frame`: series,
    epoch, value, low, high, floor."""
    x = alt.X("epoch:Q", title="Epoch", axis=alt.Axis(grid=False, format="d", tickMinStep=1))
    is_log = bool((frame["value"] > 0).all())
    scale = alt.Scale(type="log" if is_log else "linear", nice=False)
    form = ".3~%" if score.is_share else ".3~g"
    axis = alt.Axis(format=form, values=_steps(frame)) if is_log else alt.Axis(format=form, tickCount=5)
    y = alt.Y("value:Q", title=score.title, scale=scale, axis=axis)
    color = alt.Color("series:N", title=None, legend=legend(), scale=scale_of(colors))
    tooltip = [
        alt.Tooltip("series:N", title="Run"),
        alt.Tooltip("epoch:Q", title="Epoch", format="d"),
        alt.Tooltip("value:Q", title=score.title, format=".3~g"),
        alt.Tooltip("floor:Q", title="Real showers", format=".3~g"),
    ]
    base = alt.Chart(frame).encode(x=x)
    line = base.mark_line(point=alt.OverlayMarkDef(size=50), strokeWidth=2).encode(
        y=y, color=color, tooltip=tooltip
    )
    floor = base.mark_line(color=palette.REAL, strokeDash=[4, 4]).encode(y=alt.Y("floor:Q", scale=scale))
    layers = cast(alt.LayerChart, alt.layer(line, floor))
    what = f"{score.title} over the epochs of {', '.join(colors)}; dashed: of real showers among themselves."
    return layers.properties(title=heading(score.title), description=what, height=height)


def _steps(frame: pd.DataFrame) -> list[float]:
    """1, 2 and 5 times powers of ten between the least and the largest value or floor; powers alone where there are many."""
    both = pd.concat([frame["value"], frame["floor"]])
    low, high = float(both[both > 0].min()), float(both.max())
    powers = [10.0**power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    every = [first * power for power in powers for first in (1.0, 2.0, 5.0) if low <= first * power <= high]
    return every if len(every) <= MOST_STEPS else [power for power in powers if low <= power <= high]


def _decades(rows: pd.DataFrame) -> list[float]:
    """Powers of ten within the values, every second or third where there are many."""
    if rows.empty:
        return []
    low, high = np.floor(np.log10(rows["low"].min())), np.ceil(np.log10(rows["high"].max()))
    return [float(10.0**power) for power in np.arange(low, high + 1, 1 + (high - low) // 5)]


def projected(cells_gev: NDArray[np.float32], view: View) -> pd.DataFrame:
    """The rows of `projection` for a shower (X, Y, Z) in GeV: the ends of each place that holds energy, and its sum."""
    sums_gev = seen(cells_gev[np.newaxis], view)[0]
    rows, columns = np.nonzero(sums_gev)
    ends = {"left": columns, "right": columns + 1, "below": rows, "above": rows + 1}
    return pd.DataFrame({**ends, "gev": sums_gev[rows, columns]})


def projection(
    frame: pd.DataFrame, shape: tuple[int, ...], view: View, title: str, height: int = 250
) -> alt.LayerChart:
    """Sums of the cells along an axis, in GeV, as an image with fixed colors; empty places show the ground. `shape`: (X, Y, Z)."""
    up, right = shape[view.up], shape[view.right]
    names = {"x": "Cell along x", "y": "Cell along y", "z": "Layer"}
    ground = pd.DataFrame({"left": [0], "right": [right], "below": [0], "above": [up]})
    x = alt.X(
        "left:Q",
        title=names[view.across],
        scale=alt.Scale(domain=[0, right], nice=False),
        axis=alt.Axis(grid=False, tickCount=4),
    )
    y = alt.Y("below:Q", title=names[view.upwards], scale=alt.Scale(domain=[0, up], nice=False), axis=alt.Axis(grid=False, tickCount=4))  # fmt: skip
    scale = alt.Scale(
        type="log",
        domain=list(ENERGIES),
        scheme=alt.SchemeParams(name="inferno", extent=[0.16, 1.0]),
        clamp=True,
    )
    drawn = (
        alt.Chart(frame)
        .mark_rect(strokeWidth=0.7)  # of the same color: without it the ground shows between two cells
        .encode(
            x=x,
            x2="right:Q",
            y=y,
            y2="above:Q",
            color=alt.Color("gev:Q", scale=scale, legend=None),
            stroke=alt.Stroke("gev:Q", scale=scale, legend=None),
            tooltip=[
                alt.Tooltip("left:Q", title=names[view.across]),
                alt.Tooltip("below:Q", title=names[view.upwards]),
                alt.Tooltip("gev:Q", title="Energy (GeV)", format=".3~g"),
            ],
        )
    )
    behind = alt.Chart(ground).mark_rect(color=DARK).encode(x=x, x2="right:Q", y=y, y2="above:Q")
    what = f"{title}, {view.title}: energy along {view.across} and {view.upwards}."
    layers = cast(alt.LayerChart, alt.layer(behind, drawn))
    return layers.properties(title=heading(view.title.capitalize()), description=what, height=height)


def colors_of(runs: dict[str, int]) -> dict[str, str]:
    """Series → color: real showers grey, one run the color of what is generated, several runs each their own. `runs`: name → the
    color that is stored with it."""
    own = [palette.SIDES["generated"]] if len(runs) == 1 else palette.distinct(list(runs.values()))
    return {REAL: palette.REAL, **dict(zip(runs, own, strict=True))}
