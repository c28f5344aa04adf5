"""How much faster more devices are: what the Paper page and the reports of studies draw alike."""

from __future__ import annotations

import altair as alt
import pandas as pd

from dashboard import palette
from dashboard.charts import layered, legend


def speed_up(frame: pd.DataFrame, height: int = 320) -> alt.LayerChart:
    """How many times faster on more devices. `frame`: system, detail, devices, speed_up, ours (bool); both axes logarithmic."""
    base = alt.Chart().encode(
        x=alt.X(
            "devices:Q",
            title="Devices",
            scale=alt.Scale(type="log", base=2),
            axis=alt.Axis(grid=False, format="d"),
        ),
        y=alt.Y(
            "speed_up:Q", title="Times as fast as the fewest devices", scale=alt.Scale(type="log", base=2)
        ),
        color=alt.Color("system:N", title=None, legend=legend(), scale=alt.Scale(range=list(palette.RUNS))),
    )
    lines = base.mark_line(strokeWidth=2).encode(
        strokeDash=alt.condition("datum.ours", alt.value([1, 0]), alt.value([5, 4]))
    )
    points = base.mark_circle(size=60, opacity=1).encode(
        tooltip=[
            alt.Tooltip("system:N", title="System"),
            alt.Tooltip("detail:N", title="Measured with"),
            alt.Tooltip("devices:Q", title="Devices", format="d"),
            alt.Tooltip("speed_up:Q", title="Times as fast", format=".2f"),
        ]
    )
    return layered(frame, lines, points, title="How does it scale?", height=height)
