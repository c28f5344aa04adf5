"""Curves and maps of generated and held-out showers, and showers from three sides.

A frame in, an Altair chart out.
"""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dashboard import palette
from dashboard.charts import Rows, heading, layered, legend, scale_of
from dashboard.domains.showers.words import CurveWords
from gan_runtime.base import formats
from gan_runtime.domains.showers.pictures import ShowerView, sums_along

NAMES = (2, 130)  # legend columns, pixels of the longest name, in a third of the page
REAL = "Simulated showers"
LEAST_OUTSIDE, SUBTITLE = 0.01, 16  # share of the showers; pixels of a line
DARK = "#0e0c1e"  # background of an image of a shower in both themes: its darkest color
_FORMATS = {"profile": "d", "spectrum": ".3~r"}
PLACES = {"x": "Cell along x", "y": "Cell along y", "z": "Layer"}
ENERGIES = (1e-4, 10.0)  # GeV of the first and the last color, as in the images of an epoch


def with_names(frames: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """A row for each place and series: curve, x, y, value, low, high, series.

    `frames`: name of an answer → its points: curve, series (real, generated), x, y, value, error.
    The real ones come from the first answer.
    """
    parts = []
    for place, (name, frame) in enumerate(frames.items()):
        if place == 0:
            parts.append(_of_series(frame, "real", REAL))
        parts.append(_of_series(frame, "generated", name))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _of_series(frame: pd.DataFrame, series: str, title: str) -> pd.DataFrame:
    rows = frame[frame["series"] == series]
    error = rows["error"].astype(float)
    return rows[["curve", "x", "y", "value"]].assign(
        low=rows["value"] - error, high=rows["value"] + error, series=title
    )


def curve(
    rows: pd.DataFrame,
    curve_words: CurveWords,
    colors: dict[str, str],
    is_log: bool = False,
    height: int = 290,
) -> alt.LayerChart:
    """A curve of all series: a line in a band of one standard deviation.

    `rows`: as `together`, of one curve.
    """
    log_y = is_log or curve_words.kind == "spectrum"
    points = rows.assign(low=rows["low"].clip(lower=_least(rows))) if log_y else rows
    points = points[points["value"] > 0] if log_y else points
    across = alt.X(
        "x:Q",
        title=curve_words.axis,
        axis=alt.Axis(grid=False, format=_FORMATS.get(curve_words.kind, ".3~r"), tickCount=5),
        scale=(
            alt.Scale(type="log")
            if curve_words.kind == "spectrum"
            else alt.Scale(zero=False, nice=False)
        ),
    )
    upwards = (
        alt.Scale(type="log", nice=False) if log_y else alt.Scale(zero=curve_words.kind != "curve")
    )
    if log_y:
        axis = alt.Axis(format=".3~g", values=_decades(points))
    else:
        axis = alt.Axis(format="%" if curve_words.kind == "shares" else ".3~r", tickCount=5)
    color = alt.Color("series:N", title=None, legend=legend(*NAMES), scale=scale_of(colors))
    base = alt.Chart().encode(x=across, color=color)
    line = "linear" if curve_words.kind == "curve" else "step"
    band = base.mark_area(opacity=0.25, line=False, interpolate=line).encode(  # type: ignore[arg-type]
        y=alt.Y("low:Q", title=curve_words.values, scale=upwards, axis=axis), y2=alt.Y2("high:Q")
    )
    middle = base.mark_line(strokeWidth=2, interpolate=line).encode(  # type: ignore[arg-type]
        y=alt.Y("value:Q", title=curve_words.values, scale=upwards, axis=axis)
    )
    reader = base.mark_circle(size=70, opacity=0).encode(
        y=alt.Y("value:Q", scale=upwards, axis=axis),
        tooltip=[
            alt.Tooltip("series:N", title="Showers"),
            alt.Tooltip("x:Q", title=curve_words.axis, format=".4~g"),
            alt.Tooltip("value:Q", title=curve_words.values, format=".3~g"),
            alt.Tooltip("low:Q", title="Minus one standard deviation", format=".3~g"),
            alt.Tooltip("high:Q", title="Plus one standard deviation", format=".3~g"),
        ],
    )
    description = (
        f"{curve_words.values} over {curve_words.axis.lower()}, with one standard deviation. The"
        " closer to the simulated showers, the better."
    )
    outside = _outside(rows) if curve_words.kind == "shares" else []
    title = heading(curve_words.title, outside)
    height += SUBTITLE * len(outside)
    return layered(
        points, band, middle, reader, title=title, description=description, height=height
    )


def _outside(rows: pd.DataFrame) -> list[str]:
    """A sentence for each series with showers outside the bins, which fit the held-out showers."""
    shares = 1.0 - rows.groupby("series", sort=False)["value"].sum()
    return [
        f"{formats.percent(share)} of {name} are outside."
        for name, share in shares.items()
        if share > LEAST_OUTSIDE
    ]


def _least(rows: pd.DataFrame) -> float:
    """The lower end of a band on a logarithmic axis."""
    positive = rows["value"][rows["value"] > 0]
    return float(positive.min()) / 2.0 if len(positive) else 1e-9


def _decades(rows: pd.DataFrame) -> list[float]:
    """Powers of ten within the values; every second or third if there are many."""
    if rows.empty:
        return []
    low, high = np.floor(np.log10(rows["low"].min())), np.ceil(np.log10(rows["high"].max()))
    return [float(10.0**power) for power in np.arange(low, high + 1, 1 + (high - low) // 5)]


def projected(cells_gev: NDArray[np.float32], view: ShowerView) -> pd.DataFrame:
    """The rows of `projection` for a shower (X, Y, Z) in GeV: a rectangle for each place with
    energy, and its sum.
    """
    sums_gev = sums_along(cells_gev[np.newaxis], view)[0]
    rows, columns = np.nonzero(sums_gev)
    ends = {"left": columns, "right": columns + 1, "below": rows, "above": rows + 1}
    return pd.DataFrame({**ends, "gev": sums_gev[rows, columns]})


def projection(
    rows: Rows, shape: tuple[int, ...], view: ShowerView, height: int = 250
) -> alt.Chart:
    """Sums of cells along an axis, in GeV, as an image with fixed colors; empty places are dark.

    `rows`: as `projected`; `shape`: (X, Y, Z).
    """
    up, right = shape[view.up], shape[view.right]
    x = alt.X("left:Q", title=PLACES[view.across], **_cells(right))
    y = alt.Y("below:Q", title=PLACES[view.upwards], **_cells(up))
    scale = alt.Scale(
        type="log",
        domain=list(ENERGIES),
        scheme=alt.SchemeParams(name="inferno", extent=[0.16, 1.0]),
        clamp=True,
    )
    tooltip = [
        alt.Tooltip("left:Q", title=PLACES[view.across]),
        alt.Tooltip("below:Q", title=PLACES[view.upwards]),
        alt.Tooltip("gev:Q", title="Energy (GeV)", format=".3~g"),
    ]
    description = (
        f"Energy along {view.across} and {view.upwards}, summed over the third axis, in logarithmic"
        " colors. Generated showers should be as long and as wide as simulated ones."
    )
    return (
        alt.Chart(rows, view=alt.ViewBackground(fill=DARK))
        .mark_rect(strokeWidth=0.7)  # hides the gap between two cells
        .encode(
            x=x,
            x2=alt.X2("right:Q"),
            y=y,
            y2=alt.Y2("above:Q"),
            color=alt.Color("gev:Q", scale=scale, legend=None),
            stroke=alt.Stroke("gev:Q", scale=scale, legend=None),
            tooltip=tooltip,
        )
        .properties(title=heading(view.title.capitalize()), description=description, height=height)
    )


def _cells(count: int) -> dict[str, Any]:
    """Scale and axis of one side of a grid, from 0 to its end."""
    return {
        "scale": alt.Scale(domain=[0, count], nice=False),
        "axis": alt.Axis(grid=False, tickCount=4),
    }


# Half a place, with an overlap that hides the gap to the next one.
HALF = 0.51


def matrix_rows(points: pd.DataFrame) -> pd.DataFrame:
    """The rows of `matrix`, one for each place. `points`: of `together`, one matrix and series."""
    size = math.isqrt(len(points))
    rows, columns = np.divmod(np.arange(size * size), size)
    frame = pd.DataFrame(
        {"x": columns + 1, "y": rows + 1, "value": points["value"].to_numpy(float)}
    )
    edges = {
        f"{axis}_{end}": frame[axis] + side * HALF
        for axis in "xy"
        for end, side in (("low", -1), ("high", 1))
    }
    return frame.assign(**edges)


LAYERS_READING = (
    "Correlation of the energies in any two layers, over showers of all energies and angles. The"
    " patterns of generated and simulated showers should be equal."
)


def matrix(rows: Rows, size: int, curve_words: CurveWords, height: int = 300) -> alt.Chart:
    """(size, size) numbers from -1 to 1, layer by layer. The caller sets the title."""
    x, y = (
        encoding(
            f"{name}:Q",
            title=curve_words.axis,
            scale=alt.Scale(domain=[0.5, size + 0.5], nice=False),
            axis=alt.Axis(values=list(range(5, size + 1, 5)), grid=False, format="d"),
        )
        for encoding, name in ((alt.X, "x_low"), (alt.Y, "y_low"))
    )
    color = alt.Color(
        "value:Q",
        title=curve_words.values,
        scale=alt.Scale(domain=[-1, 1], scheme="purpleorange"),
        legend=alt.Legend(values=[-1, 0, 1]),
    )
    tooltip = [
        alt.Tooltip("x:Q", title=curve_words.axis),
        alt.Tooltip("y:Q", title=curve_words.axis),
        alt.Tooltip("value:Q", title=curve_words.values, format=".2f"),
    ]
    cells = alt.Chart(rows).mark_rect(clip=True)
    return cells.encode(
        x=x, x2=alt.X2("x_high:Q"), y=y, y2=alt.Y2("y_high:Q"), color=color, tooltip=tooltip
    ).properties(title=heading(""), description=LAYERS_READING, height=height)


def angle_rows(points: pd.DataFrame) -> pd.DataFrame:
    """The rows of `angle_map`: a rectangle in degrees for each place with showers, and its share.

    `points`: of `together`, one map and series; `x` and `y` are middles of equal places, in rad.
    """
    filled, half = points[points["value"] > 0], _half(np.unique(points["x"]))
    ends = {
        f"{axis}_{end}": np.degrees(filled[axis]) + side * half
        for axis in "xy"
        for end, side in (("low", -1), ("high", 1))
    }
    return pd.DataFrame(ends).assign(share=filled["value"])


def angle_ends(points: pd.DataFrame) -> tuple[float, float]:
    """Both ends of the axes of `angle_map`, in degrees."""
    middles = np.unique(points["x"])
    half = _half(middles)
    return math.degrees(middles[0]) - half, math.degrees(middles[-1]) + half


def angle_map(
    rows: Rows, ends: tuple[float, float], curve_words: CurveWords, height: int = 300
) -> alt.LayerChart:
    """Shares of showers by two angles, in degrees, with a dashed diagonal of equal angles.

    The caller sets the title.
    """
    axis: dict[str, Any] = {
        "scale": alt.Scale(domain=list(ends), nice=False),
        "axis": alt.Axis(grid=True, tickCount=5, format="d"),
    }
    x, y = (
        alt.X("x_low:Q", title=curve_words.axis, **axis),
        alt.Y("y_low:Q", title=curve_words.values, **axis),
    )
    places = _shares(curve_words).encode(x=x, x2=alt.X2("x_high:Q"), y=y, y2=alt.Y2("y_high:Q"))
    diagonal = alt.InlineData(values=[{"x_low": end, "y_low": end} for end in ends])
    line = (
        alt.Chart(diagonal)
        .mark_line(color=palette.REAL, strokeDash=[4, 4], clip=True)
        .encode(x=x, y=y)
    )
    description = (
        f"{curve_words.values} over {curve_words.axis.lower()}, in a color for the share of"
        " showers. On the dashed diagonal both are equal."
    )
    return layered(rows, places, line, title=heading(""), description=description, height=height)


def _half(middles: NDArray[np.float64]) -> float:
    """Half the width of a place, in degrees."""
    return HALF * math.degrees(middles[1] - middles[0])


def _shares(curve_words: CurveWords) -> alt.Chart:
    """Rectangles by color, without positions."""
    share = alt.Color(
        "share:Q",
        title="Showers",
        scale=alt.Scale(scheme="viridis", domainMin=0),
        legend=alt.Legend(format="%"),
    )
    tooltip = [
        alt.Tooltip("x_low:Q", title=f"{curve_words.axis} from", format=".0f"),
        alt.Tooltip("y_low:Q", title=f"{curve_words.values} from", format=".0f"),
        alt.Tooltip("share:Q", title="Share of the showers", format=".2%"),
    ]
    return alt.Chart().mark_rect().encode(color=share, tooltip=tooltip)
