"""A shower in three dimensions, as a Plotly figure that can be turned with the mouse. Streamlit brings Plotly's script with it."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import plotly.graph_objects as go

DECADES = (-5.0, 0.0)  # log10 of GeV of a cell: the first and the last color
COLORS = ["#57106e", "#bc3754", "#f98e09", "#fcffa4"]  # those of the projections, without the darkest
DARK = "#0e0c1e"
MOST_POINTS = 1_500
SMALLEST, LARGEST = 2.0, 9.0  # pixels of a point


def shower(cells_gev: NDArray[np.float32], title: str, height: int = 400) -> go.Figure:
    """A shower (X, Y, Z) in GeV: a point for each of its brightest cells, larger and brighter for more energy. The particle comes
    from the left."""
    import plotly.graph_objects as go  # 0.3 s, for those who look at a shower

    look = {"eye": {"x": -1.1, "y": -2.0, "z": 0.75}, "center": {"x": 0, "y": 0, "z": -0.12}}
    ratio = {"x": 1.2, "y": 1.0, "z": 1.0}
    layout = {
        "title": {
            "text": html.escape(title),
            "font": {"size": 14},
        },  # Plotly reads tags, and a run is called as people like
        "height": height,
        "margin": {"l": 0, "r": 0, "t": 30, "b": 0},
        "scene": {**_axes(cells_gev.shape), "aspectmode": "manual", "aspectratio": ratio, "camera": look},
        "uirevision": "showers",  # a turned shower stays as it is when the page is drawn anew
    }
    return go.Figure(go.Scatter3d(_points(cells_gev)), layout)


def _points(cells_gev: NDArray[np.float32]) -> dict[str, Any]:
    """What `Scatter3d` takes: the layer to the right, x into the depth, y upwards."""
    places = np.argsort(cells_gev, axis=None)[::-1][:MOST_POINTS]
    places = places[cells_gev.reshape(-1)[places] > 10 ** DECADES[0]]
    x, y, z = np.unravel_index(places, cells_gev.shape)
    gev = cells_gev[x, y, z]
    share = np.clip((np.log10(gev) - DECADES[0]) / (DECADES[1] - DECADES[0]), 0.0, 1.0)
    marker = {
        "size": SMALLEST + (LARGEST - SMALLEST) * share,
        "color": np.log10(gev),
        "colorscale": COLORS,
        "cmin": DECADES[0],
        "cmax": DECADES[1],
        "line": {"width": 0},
        "opacity": 0.85,
    }
    return {
        "x": z + 1,
        "y": x,
        "z": y,
        "mode": "markers",
        "marker": marker,
        "customdata": gev * 1e3,
        "hovertemplate": "layer %{x}<br>x %{y}, y %{z}<br>%{customdata:.3g} MeV<extra></extra>",
    }


def _axes(shape: tuple[int, ...]) -> dict[str, dict[str, Any]]:
    """The axes of the scene for a grid of (X, Y, Z) cells."""
    sizes = dict(zip(("yaxis", "zaxis", "xaxis"), shape, strict=True))
    titles = {"xaxis": "layer", "yaxis": "x", "zaxis": "y"}
    return {
        axis: {
            "title": {"text": titles[axis]},
            "range": [0, size],
            "showbackground": True,
            "backgroundcolor": DARK,
            "gridcolor": "#3a3650",
            "nticks": 5,
        }
        for axis, size in sizes.items()
    }
