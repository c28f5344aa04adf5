"""Distributions over epochs and runs.

As charts.py: a frame in, an altair Chart out, and no data in the spec.

The frames: as in gan_runtime/store/queries/distributions.py, at most 1,500 rows.
"""

from __future__ import annotations

from typing import Any, cast

import altair as alt
import pandas as pd

from dashboard.charts import PLAIN_LABELS, Rows, dash_of, heading, layered, scale_of

Domain = tuple[float, float] | None  # the range of all possible values, if known
OVERLAP = 2.5  # height of the highest ridge, in epochs
HEIGHT = 440
CANVAS = {"embedOptions": {"renderer": "canvas"}}  # one renderer, so that nothing is embedded again


DRIFT = "A shape that drifts, widens or narrows shows what training changes."


def ridgelines(
    frame: pd.DataFrame,
    title: str,
    axis: str,
    color: str,
    height: int = HEIGHT,
    domain: Domain = None,
) -> alt.LayerChart:
    """A ridge for each epoch of one run, the newest in front, scaled to equal height."""
    highest = frame.groupby("epoch")["share"].transform("max")
    rows = frame.assign(
        value=(frame["left"] + frame["right"]) / 2,
        top=frame["epoch"] - OVERLAP * _spacing(frame) * frame["share"] / highest,
    )[_filled(frame)].sort_values(
        ["epoch", "left"]
    )  # drawn in this order, so that the newest covers those behind it
    base = alt.Chart().encode(
        x=alt.X(
            "value:Q",
            title=axis,
            axis=alt.Axis(grid=False, labelExpr=PLAIN_LABELS),
            scale=_values(domain),
        ),
        y=alt.Y(
            "top:Q",
            title="Epoch",
            axis=_epoch_axis(),
            scale=alt.Scale(zero=False, nice=False, reverse=True),
        ),
        detail=alt.Detail("epoch:O"),
    )
    # Opaque, so that a ridge covers those behind it; the white line separates ridges of one color
    # on any background.
    ridges = base.mark_area(
        interpolate="monotone",
        fill=color,
        fillOpacity=1,
        line={"stroke": "white", "strokeWidth": 1, "strokeOpacity": 0.9},
    ).encode(y2=alt.Y2("epoch:Q"))
    reader = base.mark_circle(size=70, opacity=0).encode(tooltip=_tooltip(axis))
    subtitle = "The newest epoch is in front. All have the same height."
    description = f"A distribution for each epoch, the newest in front. {DRIFT}"
    return layered(rows, ridges, reader, **_titled(title, subtitle, description, height))


def heatmap(
    frame: pd.DataFrame,
    title: str,
    axis: str,
    color: str,
    height: int = HEIGHT,
    domain: Domain = None,
) -> alt.Chart:
    """Epochs from left to right, values upwards; a stronger color is a larger share of an epoch."""
    spacing = _spacing(frame)
    cells = frame[frame["share"] > 0].assign(
        begin=lambda rows: (rows["epoch"] - spacing + 0.5).clip(lower=0.5),
        end=lambda rows: rows["epoch"] + 0.5,
    )
    share = alt.FillOpacity("share:Q", scale=alt.Scale(type="sqrt", range=[0.03, 1]), legend=None)
    chart = (
        alt.Chart(cells)
        .mark_rect(fill=color, stroke=None)
        .encode(
            x=alt.X(
                "begin:Q",
                title="Epoch",
                axis=alt.Axis(tickMinStep=1, grid=False, format="d"),
                scale=_tight(),
            ),
            x2=alt.X2("end:Q"),
            y=alt.Y(
                "left:Q",
                title=axis,
                axis=alt.Axis(grid=False, labelExpr=PLAIN_LABELS),
                scale=_values(domain),
            ),
            y2=alt.Y2("right:Q"),
            fillOpacity=share,
            tooltip=_tooltip(axis),
        )
    )
    subtitle = "Stronger color: more values."
    description = f"A column for each epoch, in a stronger color for more values. {DRIFT}"
    return cast(alt.Chart, chart.properties(**_titled(title, subtitle, description, height)))


def run_overlay(
    frame: pd.DataFrame,
    colors: dict[str, str],
    title: str,
    axis: str,
    height: int = 340,
    domain: Domain = None,
) -> alt.LayerChart:
    """One distribution of several runs; the page has their legend (`widgets.legend`).

    `frame` has a column `run` with their names; `colors`: name → color, in the legend's order.
    """
    base = alt.Chart().encode(
        x=alt.X(
            "value:Q",
            title=axis,
            axis=alt.Axis(grid=False, labelExpr=PLAIN_LABELS),
            scale=_values(domain),
        ),
        y=alt.Y("share:Q", title="Share", axis=alt.Axis(format="~%"), stack=None),
        color=alt.Color("run:N", title=None, legend=None, scale=scale_of(colors)),
    )
    area = base.mark_area(interpolate="monotone", opacity=0.12)
    line = base.mark_line(interpolate="monotone", strokeWidth=2).encode(
        strokeDash=dash_of("run", colors)
    )
    reader = base.mark_circle(size=70, opacity=0).encode(
        tooltip=[alt.Tooltip("run:N", title="Run"), *_tooltip(axis)]
    )
    rows = frame.assign(value=(frame["left"] + frame["right"]) / 2)
    description = (
        "The same distribution of several runs at one epoch. Lines that coincide are equal"
        " distributions."
    )
    titled = _titled(title, "One line per run.", description, height)
    return layered(rows, area, line, reader, **titled)


def _filled(frame: pd.DataFrame) -> pd.Series[bool]:
    """The rows of each epoch from just before its first value to just after its last: a ridge has
    no empty tails.
    """
    rows = frame.sort_values(["epoch", "left"])
    here = rows["share"] > 0
    near = (
        here
        | here.groupby(rows["epoch"]).shift(1, fill_value=False)
        | here.groupby(rows["epoch"]).shift(-1, fill_value=False)
    )
    begun, goes_on = (
        near.groupby(rows["epoch"]).cummax(),
        near[::-1].groupby(rows["epoch"]).cummax(),
    )
    return (begun & goes_on).reindex(frame.index)


def _spacing(frame: pd.DataFrame) -> float:
    """Epochs from one shown epoch to the next; 1 for a single epoch."""
    epochs = frame["epoch"].drop_duplicates().sort_values()
    return float(epochs.diff().median()) if len(epochs) > 1 else 1.0


def _tooltip(axis: str) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("epoch:Q", title="Epoch", format="d"),
        alt.Tooltip("left:Q", title=f"{axis} from", format=".3~g"),
        alt.Tooltip("right:Q", title="to", format=".3~g"),
        alt.Tooltip("share:Q", title="Share", format=".2~%"),
    ]


def _epoch_axis() -> alt.Axis:
    """The oldest ridge rises above epoch 1, where ticks have no labels."""
    return alt.Axis(
        tickMinStep=1,
        grid=False,
        format="d",
        labelExpr="datum.value >= 1 ? datum.label : ''",
        ticks=False,
    )


def _values(domain: Domain) -> alt.Scale:
    return alt.Scale(domain=list(domain)) if domain else _tight()


def _tight() -> alt.Scale:
    return alt.Scale(zero=False, nice=False)


def _titled(title: str, subtitle: str, description: str, height: int) -> dict[str, Any]:
    """The properties of a chart."""
    return {
        "title": heading(title, subtitle),
        "description": description,
        "height": height,
        "usermeta": CANVAS,
    }


def value_histogram(rows: Rows, title: str, axis: str, color: str, height: int = 230) -> alt.Chart:
    """Weights or gradients of one network at one epoch; counts on a log scale from 0 show tails."""
    counts = alt.Axis(
        labelExpr="format(datum.value, '~s')", values=[0, *(10**power for power in range(1, 10, 2))]
    )
    return (
        alt.Chart(rows)
        .mark_bar(color=color, binSpacing=0)
        .encode(
            x=alt.X("left:Q", title=axis, axis=alt.Axis(grid=False, labelExpr=PLAIN_LABELS)),
            x2=alt.X2("right:Q"),
            y=alt.Y("count:Q", title="Count (log)", scale=alt.Scale(type="symlog"), axis=counts),
            y2=alt.Y2Datum(0),
            tooltip=[
                alt.Tooltip("left:Q", title="From", format=".3g"),
                alt.Tooltip("right:Q", title="To", format=".3g"),
                alt.Tooltip("count:Q", title="Count", format=","),
            ],
        )
        .properties(
            title=title,
            description=(
                "Counts of weights or gradients by value, after one epoch, on a logarithmic scale."
                " Long tails are few but large values."
            ),
            height=height,
        )
    )
