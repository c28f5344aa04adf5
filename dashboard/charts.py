"""Charts: a DataFrame in, an altair Chart out. No Streamlit here.

The specs are constant: they hold no data, so a live update only replaces the rows and keeps the
view. The wheel scrolls the page; a drag across a chart zooms, and the page answers with the rows
of that part (`plots.py`).

Text is readable in the light and the dark theme. Smoothed curves are computed here: in the browser
they would need a transform in the specification and a second copy of the rows. So few and many
points have the same specification, and a chart that gets more points stays in place.
"""

from __future__ import annotations

import json
import math
from typing import Any, cast

import altair as alt
import pandas as pd

from dashboard import palette
from dashboard.chart_panels import Group
from gan_runtime.base.metrics import Panel

# Streamlit draws axis labels in a gray of contrast 3.7 in the light theme. Vega knows its
# background, so one expression fits both themes, and no specification depends on the viewer.
READABLE = f"luminance(background) > 0.5 ? '{palette.WORDS_ON_LIGHT}' : '{palette.WORDS_ON_DARK}'"


def ink() -> alt.ExprRef:
    """The color of text next to marks."""
    return alt.ExprRef(READABLE)


# Part of every specification: labels, titles and legend in that color, unless a chart sets its own.
# Only the chart as a whole has a description: one for each mark took half of the drawing time.
CONFIG = alt.Config(
    mark=alt.MarkConfig(aria=False),
    axis=alt.AxisConfig(labelColor=ink(), titleColor=ink()),
    legend=alt.LegendConfig(labelColor=ink(), titleColor=ink()),
    header=alt.HeaderConfig(labelColor=ink(), titleColor=ink()),
    title=alt.TitleConfig(subtitleColor=ink()),
).to_dict(validate=False)


LIVE_SHARE = 0.03  # of a curve's points, averaged into a smoothed one, on the page of a run


def with_smoothed(frame: pd.DataFrame, points: int, curve: str) -> pd.DataFrame:
    """The rows with a column `smoothed`: the mean of the last `points` values of `mean`, or of all
    before, if fewer.

    `curve`: the column that distinguishes the curves; the rows of each are in the order of x.
    """
    means = frame.groupby(curve, sort=False, observed=True)["mean"]
    return frame.assign(
        smoothed=means.transform(lambda values: values.rolling(points, min_periods=1).mean())
    )


def smoothed_points(share: float, points: int) -> int:
    """How many points a smoothed one averages, for curves of at most `points` points."""
    return max(1, round(share * points))


SOLID, DASHED = [1, 0], [5, 3]
ZOOM, WHOLE = "zoom", "whole"  # parameters of a chart that can be zoomed: drag, double-click
# Pixels: a chart on a phone, a symbol of a legend with its gap, a letter.
NARROWEST, SYMBOL, LETTER = 300, 34, 7
GROUND = "ground"  # the one row of the rectangle behind everything; its values are not shown
Rows = pd.DataFrame | alt.NamedData  # the rows, or a name for rows that come later


def step_curves(rows: Rows, group: Group, height: int = 260) -> alt.LayerChart:
    """Numbers of one run over its steps: raw faint, smoothed bold, one color each; dashed where an
    earlier line has that color.

    `rows`: as `queries.curves`, with the column `smoothed` of `with_smoothed`.
    """
    has_dashes, panel = bool(palette.repeated(group.colors)), group.panel
    above = fitted_legend(group.colors, has_dashes)
    series = alt.Color("series:N", title=None, legend=above, scale=_scale(group))
    dash = {"strokeDash": dash_of("series", group.colors, above)} if has_dashes else {}
    axis = alt.Axis(tickMinStep=1, grid=False)
    labels = json.dumps(group.labels)
    base = (
        alt.Chart()
        .transform_calculate(series=f"{labels}[datum.metric]")
        .encode(
            x=alt.X("x:Q", title="Step", axis=axis, scale=alt.Scale(zero=False, nice=False)),
            color=series,
        )
    )

    def of(field: str) -> alt.Y:
        return alt.Y(
            f"{field}:Q",
            title=group.axis,
            scale=_values(group),
            axis=log_axis() if group.log else alt.Axis(),
        )

    tooltip = [
        alt.Tooltip("series:N", title=panel.series),
        alt.Tooltip("step:Q", title="Step", format=",d"),
        alt.Tooltip("epoch:Q", title="Epoch", format="d"),
        alt.Tooltip("mean:Q", title="Value", format=group.format),
    ]
    band = base.mark_area(opacity=0.12, line=False).encode(y=of("low"), y2=alt.Y2("high:Q"))
    raw = base.mark_line(opacity=0.35, strokeWidth=1).encode(y=of("mean"))
    bold = base.mark_line(strokeWidth=2.5).encode(y=of("smoothed"), **dash)
    reader = base.mark_circle(size=90, opacity=0).encode(y=of("mean"), tooltip=tooltip)
    layers = (ground(), *reference_marks(group), band, raw, bold, reader.add_params(drag()))
    description = (
        f"Lines over the training steps: faint as measured, bold smoothed. {panel.reading}"
    )
    svg = {"embedOptions": {"renderer": "svg"}}
    title = panel.heading
    return layered(rows, *layers, title=title, description=description, height=height, usermeta=svg)


def one_curve(rows: Rows, title: str, x_label: str, y_label: str, height: int = 240) -> alt.Chart:
    """One line over columns x and y, a point at each value."""
    description = f"{y_label} over {x_label}. It describes the data set, before any training."
    return (
        alt.Chart(rows, title=title, height=height, description=description)
        .mark_line(color=palette.REAL, point={"color": palette.REAL, "size": 16})
        .encode(x=alt.X("x:Q", title=x_label), y=alt.Y("y:Q", title=y_label))
    )


def layered(rows: Rows, *layers: alt.Chart, **properties: Any) -> alt.LayerChart:
    """One chart from layers that draw the same rows, except layers with their own rows.

    Pass rows and properties here, once: Altair would write each table as text to find shared rows,
    and copy all layers for each property set later.
    """
    return cast(alt.LayerChart, alt.layer(*layers, data=rows, **properties))


def _values(group: Group) -> alt.Scale:
    """The scale of the values: the declared domain, or a fitting one."""
    if group.panel.domain:
        return alt.Scale(domain=list(group.panel.domain))
    return alt.Scale(type="log", nice=False) if group.log else alt.Scale(zero=False)


def drag() -> alt.Parameter:
    """The parameter that reports a drag to the page: a range of x."""
    return alt.selection_interval(name=ZOOM, encodings=["x"], translate=False, zoom=False)


def ground() -> alt.Chart:
    """An invisible rectangle behind everything: a double-click on it shows everything again."""
    kinds: dict[str, Any] = {"x": alt.XValue, "x2": alt.X2Value, "y": alt.YValue, "y2": alt.Y2Value}
    ends = {"x": 0, "x2": "width", "y": 0, "y2": "height"}
    corners = {name: kinds[name](end) for name, end in ends.items()}
    rectangle = alt.Chart(alt.NamedData(name=GROUND)).mark_rect(opacity=0).encode(**corners)
    return rectangle.add_params(
        alt.selection_point(name=WHOLE, fields=["x"], on="dblclick", clear=False)
    )


def score_histogram(rows: Rows, group: Group, height: int = 260) -> alt.Chart:
    """How the discriminator scored the probed rows at one epoch.

    `rows`: as `queries.histogram`.
    """
    return (
        alt.Chart(rows)
        .transform_calculate(series=f"{json.dumps(group.labels)}[datum.name]")
        .mark_bar(opacity=0.65, binSpacing=0)
        .encode(
            x=alt.X("left:Q", title=group.axis, scale=_values(group), axis=alt.Axis(grid=False)),
            x2=alt.X2("right:Q"),
            y=alt.Y(
                "share:Q", title=_share(group.panel.series), stack=None, axis=alt.Axis(format="%")
            ),
            y2=alt.Y2Datum(0),
            color=alt.Color(
                "series:N", title=None, legend=fitted_legend(group.colors), scale=_scale(group)
            ),
            tooltip=[
                alt.Tooltip("series:N", title=group.panel.series),
                alt.Tooltip("left:Q", title="Score from", format=group.format),
                alt.Tooltip("share:Q", title="Share", format=".1%"),
            ],
        )
        .properties(
            title="Distribution of the scores",
            description=(
                "Shares of the rows measured after one epoch, by their value. Where the histograms"
                " overlap, generated rows look like real ones."
            ),
            height=height,
        )
    )


def _share(series: str) -> str:
    return "Share" if series == Panel.series else f"Share of {series.lower()}"


def heading(text: str, subtitle: str | list[str] = "") -> alt.Title:
    """A chart's title, with one or more quieter lines below it."""
    return alt.Title(text, subtitle=subtitle, subtitleFontSize=12, subtitlePadding=4)


def legend(columns: int = 0, widest: int = 260, has_dashes: bool = False) -> alt.Legend:
    """A legend above the chart, with symbols strong enough to distinguish.

    `columns`: 0 for one row; `widest`: of a name, in pixels; `has_dashes`: symbols are pieces of
    lines, because a dashed circle is a blot.
    """
    symbol: dict[str, Any] = {"symbolType": "stroke", "symbolSize": 300} if has_dashes else {}
    return alt.Legend(
        orient="top",
        direction="horizontal",
        columns=columns,
        offset=0,
        labelLimit=widest,
        symbolOpacity=1,
        symbolStrokeWidth=3,
        **symbol,
    )


def fitted_legend(colors: dict[str, str], has_dashes: bool = False) -> alt.Legend:
    """A legend in one row if it fits above the narrowest chart, else in columns, so that no name
    is cut.
    """
    if legend_rows(colors) == 1:
        return legend(has_dashes=has_dashes)
    return legend(_columns(colors), NARROWEST - SYMBOL, has_dashes)


def legend_rows(colors: dict[str, str]) -> int:
    """How many rows of names the legend has."""
    in_a_row = sum(SYMBOL + LETTER * len(name) for name in colors) <= NARROWEST
    return 1 if in_a_row else math.ceil(len(colors) / _columns(colors))


def _columns(colors: dict[str, str]) -> int:
    """As many as fit side by side: 7 for digits, 1 for long names."""
    return max(1, NARROWEST // (SYMBOL + LETTER * max(map(len, colors))))


def reference_marks(group: Group) -> list[alt.Chart]:
    """The reference band or level of the panel, as constant data; nothing where it has none."""
    if group.panel.usual is None:
        return []
    low, high = group.panel.usual
    chart = alt.Chart(alt.InlineData(values=[{"low": low, "high": high}]))
    if low == high:
        return [chart.mark_rule(color=palette.NEUTRAL, strokeDash=[2, 3]).encode(y=alt.Y("low:Q"))]
    return [
        chart.mark_rect(color=palette.NEUTRAL, opacity=0.15).encode(
            y=alt.Y("low:Q"), y2=alt.Y2("high:Q")
        )
    ]


def drawn_on_log(low: pd.Series, values: pd.Series) -> pd.Series:
    """The lower ends of intervals as a logarithmic axis draws them, which has no place for 0 and
    below: at least a tenth of the least of `values`, which are all above 0.
    """
    return low.clip(lower=float(values.min()) / 10.0)


# Labels of a linear axis: digits by the distance of its lines, but powers of ten for small numbers.
# Format "~g" writes 4e+1 for 40.
PLAIN_LABELS = "datum.value && abs(datum.value) < 0.001 ? format(datum.value, '.3~g') : datum.label"


def log_axis(form: str = "~g") -> alt.Axis:
    """Lines at 1, 2 and 5 of each power of ten; Vega would draw one for each digit. Within a factor
    of 5, where as few as none of them fit, Vega chooses.
    """
    values = [float(f"{digit}e{power}") for power in range(-12, 9) for digit in (1, 2, 5)]
    chosen = f"domain('y')[1] < 5 * domain('y')[0] ? null : {values}"
    return alt.Axis(values=alt.ExprRef(chosen), format=form, labelOverlap="greedy")


def dash_of(field: str, colors: dict[str, str], above: alt.Legend | None = None) -> alt.StrokeDash:
    """Name → dash: a line is dashed if an earlier one has its color.

    `above`: the legend of the colors, which shows the dashes too.
    """
    repeats = palette.repeated(colors)
    dashes = [DASHED if name in repeats else SOLID for name in colors]
    scale = alt.Scale(domain=list(colors), range=dashes)
    return alt.StrokeDash(f"{field}:N", title=None, legend=above, scale=scale)


def _scale(group: Group) -> alt.Scale:
    return scale_of(group.colors)


def scale_of(colors: dict[str, str]) -> alt.Scale:
    """Name in the legend → color."""
    return alt.Scale(domain=list(colors), range=list(colors.values()))
