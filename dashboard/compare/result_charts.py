"""Charts of what came out of several runs: a result against time, and parallel coordinates. No Streamlit here.

A click on a point or a line selects its run as in compare_charts.py.
"""

from __future__ import annotations

import altair as alt
import pandas as pd

from dashboard import chart_style, charts, palette
from dashboard.compare import charts as compare_charts
from dashboard.compare import parallel as parallel_rows
from dashboard.compare.charts import PICK
from dashboard.compare.result_words import Result

HEIGHT = 320
HEADING, ROW = 60, 62  # pixels of the title, and of each axis of parallel coordinates


def scatter(
    frame: pd.DataFrame, front: pd.DataFrame, colors: dict[str, str], result: Result, value: str
) -> alt.LayerChart:
    """A result of each run against its training seconds, the front of those that no other beats as a line.

    `frame`: columns run, series (whose colour it has), seconds, text, and `value`; `front`: the same, fastest first.
    """
    x = alt.X("seconds:Q", title="Training time (s)", axis=alt.Axis(grid=False), scale=alt.Scale(domainMin=0))
    y_axis = alt.Axis(format="%") if result.format.endswith("%") else alt.Axis()
    y = alt.Y(f"{value}:Q", title=result.axis, scale=alt.Scale(zero=False, padding=16), axis=y_axis)
    dashed = alt.Chart(front).mark_line(interpolate="step-after", color=palette.NEUTRAL, strokeDash=[5, 4])
    points = _runs(colors, result)
    layers = (dashed.encode(x=x, y=y), points.encode(x=x, y=y))
    title = alt.Title(f"{result.title} against training time", subtitle=_reading(result))
    what = f"{result.title} of each run as a point over its training time."
    rows = _named(frame, front, colors)
    return compare_charts.finished(rows, *layers, title=title, description=what, height=HEIGHT)


def _named(frame: pd.DataFrame, front: pd.DataFrame, colors: dict[str, str]) -> pd.DataFrame:
    """Whether each run lies on the front, in words, and whether another series has its colour."""
    return frame.assign(
        on_front=frame["run"]
        .isin(front["run"])
        .map({True: "on it", False: "beaten by another run" if len(front) else "none"}),
        hollow=frame["series"].isin(palette.repeated(colors)),
    )


def _runs(colors: dict[str, str], result: Result) -> alt.Chart:
    """A point of each run, hollow where another series has its colour."""
    pick = alt.selection_point(name=PICK, fields=["run"])
    outline = alt.Scale(domain=list(colors), range=list(colors.values()))
    hollow = alt.when("datum.hollow").then(alt.value(0)).otherwise(alt.value(1))
    points = alt.Chart().mark_circle(size=190, strokeWidth=3).add_params(pick)
    return points.encode(
        color=compare_charts.color_of("series", colors),
        stroke=alt.Stroke("series:N", legend=None, scale=outline),
        fillOpacity=alt.FillOpacityValue(**hollow),
        opacity=compare_charts.unless_picked(pick, 1.0, 0.25),
        tooltip=[
            alt.Tooltip("run:N", title="Run"),
            alt.Tooltip("seconds:Q", title="Training time (s)", format=",.1f"),
            alt.Tooltip("text:N", title=result.axis),
            alt.Tooltip("on_front:N", title="Pareto front"),
        ],
    )


def parallel(crossings: pd.DataFrame, ticks: pd.DataFrame, colors: dict[str, str]) -> alt.LayerChart:
    """One line a run down the axes, which lie below each other, so that their names and values have room on any screen.

    The frames as `parallel.crossings`, with a column `series`, and `parallel.ticks` give them.
    """
    pick = alt.selection_point(name=PICK, fields=["run"])
    order = list(dict.fromkeys(crossings["axis"]))
    x = alt.X("place:Q", title=None, axis=None, scale=alt.Scale(domain=[0, 1]))
    y = alt.Y("axis:N", title=None, sort=order, axis=None, scale=alt.Scale(type="point", padding=0.5))
    base = alt.Chart().encode(
        x=x, y=y, color=compare_charts.color_of("series", colors), detail=alt.Detail("run:N")
    )
    faded = compare_charts.unless_picked(pick, 0.9, 0.12)
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
    rules = alt.Chart(ends).mark_rule(color=palette.NEUTRAL, opacity=0.5).encode(x=x, y=y, x2=alt.X2("end:Q"))
    names = alt.Chart(ends).mark_text(
        align="left", dy=-14, fontSize=12, fontWeight=600, color=chart_style.ink()
    )
    values = [
        alt.Chart(ticks[ticks["align"] == side])
        .mark_text(align=side, dy=15, color=chart_style.ink(), fontSize=12)
        .encode(x=x, y=y, text=alt.Text("text:N"))
        for side in parallel_rows.SIDES
    ]
    title = alt.Title("Which options lead where?", subtitle="One line a run; every axis has its own scale.")
    layers = (rules, lines, points, names.encode(x=x, y=y, text=alt.Text("axis:N")), *values)
    what = "Parallel coordinates: a line for each run down the options and results that were picked."
    height = HEADING + ROW * len(order)
    return compare_charts.finished(crossings, *layers, title=title, description=what, height=height)


def _reading(result: Result) -> str:
    if result.best == "none":
        return "A better value of it does not mean better images, so there is no Pareto front."
    better = {"lowest": "Lower", "highest": "Higher"}[result.best]
    return f"{better} is better. Dashed: no run is both faster and better (Pareto front)."
