"""Variants of one setting side by side.

As charts.py: a frame in, an altair Chart out, and no data in the spec.
"""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from dashboard.charts import drag, ground, heading, layered
from gan_runtime.base.metrics import Metric
from gan_runtime.studies.statistics import Cost, break_even_steps

DASHES = ([1, 0], [6, 3], [2, 3])
CANVAS = {"embedOptions": {"renderer": "canvas"}}


def pay_back(
    costs: dict[str, Cost], colors: dict[str, str], steps: int, height: int = 300
) -> alt.LayerChart:
    """Seconds of compiling and training over the steps, a line for each variant; a dot where one
    has caught up with the first.

    `colors`: variant → color, in legend order. Lines end at `steps`, or just after the last dot.
    """
    first, *rest = costs
    dots = {name: break_even_steps(costs[first], costs[name]) for name in rest}
    near = {name: dot for name, dot in dots.items() if dot is not None and 0 < dot < 5 * steps}
    end = max(float(steps), *(1.25 * dot for dot in near.values())) if near else float(steps)
    lines = pd.DataFrame(
        [(name, step, cost.after(step)) for name, cost in costs.items() for step in (0.0, end)],
        columns=["variant", "step", "seconds"],
    )
    met = pd.DataFrame(
        [(name, dot, costs[first].after(dot)) for name, dot in near.items()],
        columns=["variant", "step", "seconds"],
    ).astype({"step": float, "seconds": float})
    scale = alt.Scale(domain=list(colors), range=list(colors.values()))
    encoding: dict[str, Any] = {
        "x": alt.X(
            "step:Q",
            title="Step",
            axis=alt.Axis(grid=False, format=",d"),
            scale=alt.Scale(nice=False),
        ),
        "y": alt.Y("seconds:Q", title="Compiling and training (s)"),
        "color": alt.Color("variant:N", title=None, legend=_lines(), scale=scale),
        "tooltip": [
            alt.Tooltip("variant:N", title="Variant"),
            alt.Tooltip("step:Q", title="Step", format=",.0f"),
            alt.Tooltip("seconds:Q", title="Seconds", format=",.1f"),
        ],
    }
    curves = alt.Chart().mark_line(strokeWidth=2.5).encode(**encoding)
    dot = alt.Chart(met).mark_circle(size=130, opacity=1).encode(**encoding)
    title = heading(
        "When is compiling paid back?",
        f"A dot marks the step at which a variant has caught up with {first}.",
    )
    description = (
        "Seconds of compiling and training over the steps, a line for each variant. A dot marks"
        " where a variant has paid back its longer start."
    )
    return layered(lines, curves, dot, title=title, description=description, height=height)


def loss_curves(
    frame: pd.DataFrame, colors: dict[str, str], metric: Metric, height: int = 260
) -> alt.LayerChart:
    """A loss of one run of each variant over the steps.

    `frame`: as `queries.curves`, with a column `variant`. Equal curves overlap: the dashes of later
    ones let the first one show.
    """
    names = list(colors)
    base = alt.Chart().encode(
        x=alt.X(
            "step:Q",
            title="Step",
            axis=alt.Axis(grid=False, format=",d"),
            scale=alt.Scale(zero=False, nice=False),
        ),
        y=alt.Y("mean:Q", title=metric.axis, scale=alt.Scale(zero=False)),
        color=alt.Color(
            "variant:N",
            title=None,
            legend=_lines(),
            scale=alt.Scale(domain=names, range=list(colors.values())),
        ),
    )
    dash = alt.StrokeDash(
        "variant:N",
        title=None,
        legend=_lines(),
        scale=alt.Scale(domain=names, range=DASHES[: len(names)]),
    )
    tooltip = [
        alt.Tooltip("variant:N", title="Variant"),
        alt.Tooltip("step:Q", title="Step", format=",d"),
        alt.Tooltip("mean:Q", title="Loss", format=".4f"),
    ]
    line = base.mark_line(strokeWidth=2).encode(strokeDash=dash)
    reader = base.mark_circle(size=90, opacity=0).encode(tooltip=tooltip)
    layers = (ground(), line, reader.add_params(drag()))
    description = (
        f"{metric.title} of one run of each variant over the steps. Equal lines overlap, and the"
        " dashes of all show."
    )
    title = metric.title
    return layered(
        frame, *layers, title=title, description=description, height=height, usermeta=CANVAS
    )


def _lines() -> alt.Legend:
    """A legend of lines."""
    return alt.Legend(
        orient="top",
        direction="horizontal",
        offset=0,
        labelLimit=260,
        symbolType="stroke",
        symbolStrokeWidth=3,
    )
