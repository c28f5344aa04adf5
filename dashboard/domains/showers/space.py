"""A shower in three dimensions that can be turned with the mouse: a figure of Plotly, as JSON that its script in the browser draws.

Streamlit brings that script. It would also take a figure of Plotly's package for Python, which it then loads at its start: 0.24 s and 15 MB of every
dashboard, for this one figure (docs/decisions/0066-plotly-without-its-package.md).
"""

from __future__ import annotations

import html
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray
from streamlit.delta_generator import DeltaGenerator
from streamlit.elements.lib.layout_utils import LayoutConfig
from streamlit.elements.lib.utils import compute_and_register_element_id
from streamlit.proto.PlotlyChart_pb2 import PlotlyChart

DECADES = (-5.0, 0.0)  # log10 of GeV of a cell: the first and the last color
COLORS = ["#57106e", "#bc3754", "#f98e09", "#fcffa4"]  # those of the projections, without the darkest
DARK = "#0e0c1e"
MOST_POINTS = 1_500
SMALLEST, LARGEST = 2.0, 9.0  # pixels of a point
HEIGHT = 400


def draw(figure: dict[str, Any], place: DeltaGenerator, key: str) -> None:
    """Draws a figure as wide as its place, as `st.plotly_chart` does; `key`: of this one on its page."""
    chart = PlotlyChart(
        theme="streamlit", spec=json.dumps(figure), config=json.dumps({"displayModeBar": False})
    )
    chart.id = compute_and_register_element_id(
        "plotly_chart", user_key=key, key_as_main_identity=False, dg=place, plotly_spec=chart.spec
    )
    place._enqueue("plotly_chart", chart, layout_config=LayoutConfig(width="stretch", height=HEIGHT))


def shower(cells_gev: NDArray[np.float32], title: str) -> dict[str, Any]:
    """A shower (X, Y, Z) in GeV: a point for each of its brightest cells, larger and brighter for more energy. The particle comes
    from the left."""
    look = {"eye": {"x": -1.1, "y": -2.0, "z": 0.75}, "center": {"x": 0, "y": 0, "z": -0.12}}
    ratio = {"x": 1.2, "y": 1.0, "z": 1.0}
    layout = {
        # Plotly reads tags, and a run is called as people like.
        "title": {"text": html.escape(title), "font": {"size": 14}},
        # Streamlit's script writes the colors of its theme into it.
        "template": {"data": {}, "layout": {}},
        "height": HEIGHT,
        "margin": {"l": 0, "r": 0, "t": 30, "b": 0},
        "scene": {**_axes(cells_gev.shape), "aspectmode": "manual", "aspectratio": ratio, "camera": look},
        "uirevision": "showers",  # a turned shower stays as it is when the page is drawn anew
    }
    return {"data": [_points(cells_gev)], "layout": layout}


def _points(cells_gev: NDArray[np.float32]) -> dict[str, Any]:
    """A trace of Plotly: the layer to the right, x into the depth, y upwards."""
    places = np.argsort(cells_gev, axis=None)[::-1][:MOST_POINTS]
    places = places[cells_gev.reshape(-1)[places] > 10 ** DECADES[0]]
    x, y, z = np.unravel_index(places, cells_gev.shape)
    gev = cells_gev[x, y, z].astype(np.float64)
    decades = np.log10(gev)
    share = np.clip((decades - DECADES[0]) / (DECADES[1] - DECADES[0]), 0.0, 1.0)
    marker = {
        "size": (SMALLEST + (LARGEST - SMALLEST) * share).round(3).tolist(),
        "color": decades.round(4).tolist(),
        "colorscale": [[place / (len(COLORS) - 1), color] for place, color in enumerate(COLORS)],
        "cmin": DECADES[0],
        "cmax": DECADES[1],
        "line": {"width": 0},
        "opacity": 0.85,
    }
    return {
        "type": "scatter3d",
        "x": (z + 1).tolist(),
        "y": x.tolist(),
        "z": y.tolist(),
        "mode": "markers",
        "marker": marker,
        "customdata": [float(f"{mev:.4g}") for mev in gev * 1e3],
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
