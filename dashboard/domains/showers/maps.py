"""Maps of showers: which layers go together, and whether the angle is as asked. A frame in, an Altair chart out."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dashboard import palette
from dashboard.charts import Rows, heading, layered
from gan_runtime.domains.showers.curve_names import CurveWords

HALF = (
    0.51  # of a place, to each side of its middle: without the overlap the ground shows between two of them
)


def matrix_rows(own: pd.DataFrame) -> pd.DataFrame:
    """The rows of `matrix`: a place each. `own`: those of `together` of one matrix and series."""
    size = math.isqrt(len(own))
    rows, columns = np.divmod(np.arange(size * size), size)
    frame = pd.DataFrame({"x": columns + 1, "y": rows + 1, "value": own["value"].to_numpy(float)})
    edges = {
        f"{axis}_{end}": frame[axis] + side * HALF
        for axis in "xy"
        for end, side in (("low", -1), ("high", 1))
    }
    return frame.assign(**edges)


def matrix(rows: Rows, size: int, told: CurveWords, height: int = 300) -> alt.Chart:
    """(size, size) numbers from -1 to 1, layer by layer. The title is left to whoever draws it."""
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
    drawn = alt.Chart(rows).mark_rect(clip=True)
    return drawn.encode(
        x=x, x2=alt.X2("x_high:Q"), y=y, y2=alt.Y2("y_high:Q"), color=color, tooltip=tooltip
    ).properties(title=heading(""), description=told.title, height=height)


def angle_rows(own: pd.DataFrame) -> pd.DataFrame:
    """The rows of `angle_map`: the ends of each place that holds showers, in degrees, and its share. `own`: those of `together` of one map
    and series; `x` and `y` are the middles of equal places, rad."""
    filled, half = own[own["value"] > 0], _half(np.unique(own["x"]))
    ends = {
        f"{axis}_{end}": np.degrees(filled[axis]) + side * half
        for axis in "xy"
        for end, side in (("low", -1), ("high", 1))
    }
    return pd.DataFrame(ends).assign(share=filled["value"])


def angle_ends(own: pd.DataFrame) -> tuple[float, float]:
    """From where to where both axes of `angle_map` go, degrees."""
    middles = np.unique(own["x"])
    half = _half(middles)
    return math.degrees(middles[0]) - half, math.degrees(middles[-1]) + half


def angle_map(rows: Rows, ends: tuple[float, float], told: CurveWords, height: int = 300) -> alt.LayerChart:
    """Shares of showers by two angles, in degrees, and dashed where both are equal. The title is left to whoever draws it."""
    axis: dict[str, Any] = {
        "scale": alt.Scale(domain=list(ends), nice=False),
        "axis": alt.Axis(grid=True, tickCount=5, format="d"),
    }
    x, y = alt.X("x_low:Q", title=told.axis, **axis), alt.Y("y_low:Q", title=told.values, **axis)
    places = _shares(told).encode(x=x, x2=alt.X2("x_high:Q"), y=y, y2=alt.Y2("y_high:Q"))
    asked = alt.InlineData(values=[{"x_low": end, "y_low": end} for end in ends])
    line = alt.Chart(asked).mark_line(color=palette.REAL, strokeDash=[4, 4], clip=True).encode(x=x, y=y)
    what = f"{told.title} {told.values} over {told.axis.lower()}"
    return layered(rows, places, line, title=heading(""), description=what, height=height)


def _half(middles: NDArray[np.float64]) -> float:
    """Of the width of a place between these, degrees."""
    return HALF * math.degrees(middles[1] - middles[0])


def _shares(told: CurveWords) -> alt.Chart:
    """Rectangles by color, not yet placed."""
    share = alt.Color(
        "share:Q",
        title="Showers",
        scale=alt.Scale(scheme="viridis", domainMin=0),
        legend=alt.Legend(format="%"),
    )
    tooltip = [
        alt.Tooltip("x_low:Q", title=f"{told.axis} from", format=".0f"),
        alt.Tooltip("y_low:Q", title=f"{told.values} from", format=".0f"),
        alt.Tooltip("share:Q", title="Share of the showers", format=".2%"),
    ]
    return alt.Chart().mark_rect().encode(color=share, tooltip=tooltip)
