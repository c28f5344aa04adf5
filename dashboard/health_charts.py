"""Small charts of a run's health.

As charts.py: a frame in, an altair Chart out, and no data in the spec.

The frames: as `queries.epoch_scores`, or as `queries.curves` over steps.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import altair as alt
import pandas as pd

from dashboard import charts, palette
from dashboard.chart_panels import Group
from dashboard.charts import PLAIN_LABELS, Rows, heading, layered, log_axis
from gan_runtime.base.metrics import FAMILIES, LOSS_SCALE, Metric

# Equal values overlap: the dashes of a later line let the first one show.
DASHES = ([1, 0], [6, 4], [2, 3], [8, 3, 2, 3])
HEIGHT = 290  # with title, legend and axes: the curves themselves get about half
LOSS_SCALES = FAMILIES[LOSS_SCALE].panel
ROW_HEIGHT = 15  # of a legend


def rows_of(frame: pd.DataFrame, group: Group) -> pd.DataFrame:
    """The rows of a chart, with legend names; over steps the first line comes first, so that the
    dashes of later lines are on top.
    """
    rows = frame.assign(series=frame["metric"].map(group.labels))
    return rows if group.per_epoch else _in_order(rows, group.colors)


def over_epochs(rows: Rows, group: Group) -> alt.LayerChart:
    """Numbers of the epochs, a line each, with the panel's reference behind them."""
    drawn = "Lines over the epochs, a point for each measurement."
    return _small(rows, group, drawn, *charts.reference_marks(group), *_epoch_lines(group))


def over_steps(rows: Rows, group: Group) -> alt.LayerChart:
    """Numbers of the steps, unsmoothed."""
    y = alt.Y("mean:Q", title=group.axis, **_step_axis(group))
    tooltip = alt.Tooltip("step:Q", title="Step", format=",d")
    lines = _dashed(group.colors, _x("step"), y, tooltip, "mean", ".4~g")
    return _small(
        rows,
        group,
        "Lines over the training steps, unsmoothed.",
        *charts.reference_marks(group),
        lines,
    )


def planned_rates(frame: pd.DataFrame, colors: dict[str, str]) -> alt.LayerChart:
    """Learning rates over the epochs of a future run.

    Columns: epoch (from 0), series, rate; `colors`: of each series.
    """
    y = alt.Y("rate:Q", title="Learning rate", axis=alt.Axis(labelExpr=PLAIN_LABELS, tickCount=4))
    tooltip = alt.Tooltip("epoch:Q", title="Epoch", format=".1f")
    lines = _dashed(colors, _x("epoch"), y, tooltip, "rate", ".3~g")
    description = (
        "The learning rates that these options give, over the epochs. Alarms can lower them during"
        " the run."
    )
    title = "Learning rates over the epochs"
    return _titled(_in_order(frame, colors), lines, title=title, description=description)


def _small(rows: Rows, group: Group, drawn: str, *layers: alt.Chart) -> alt.LayerChart:
    """A chart of the common height, plus further rows of its legend. `drawn`: one sentence on what
    it shows.
    """
    panel, height = group.panel, HEIGHT + ROW_HEIGHT * (charts.legend_rows(group.colors) - 1)
    return _titled(
        rows,
        *layers,
        title=panel.heading,
        description=f"{drawn} {panel.reading}",
        subtitle=panel.subtitle,
        height=height,
    )


def _titled(
    rows: Rows,
    *layers: alt.Chart,
    title: str,
    description: str,
    subtitle: str = "",
    height: int = HEIGHT,
) -> alt.LayerChart:
    title_with_subtitle = charts.heading(title, subtitle)
    return charts.layered(
        rows, *layers, title=title_with_subtitle, description=description, height=height
    )


def _in_order(rows: pd.DataFrame, colors: dict[str, str]) -> pd.DataFrame:
    """The rows sorted by line."""
    order = {name: number for number, name in enumerate(colors)}
    return rows.sort_values("series", key=lambda names: names.map(order), kind="stable")


def _epoch_lines(group: Group) -> tuple[alt.Chart, ...]:
    """A line for each number, with a point at every epoch."""
    y = alt.Y("value:Q", title=group.axis, **_epoch_axis(group))
    base = alt.Chart().encode(x=_x("epoch"), y=y, color=_color(group.colors))
    if group.log:
        base = base.transform_filter("datum.value > 0")  # 0 has no logarithm: a gap
    tooltip = [
        alt.Tooltip("series:N", title=group.panel.series),
        alt.Tooltip("epoch:Q", title="Epoch", format="d"),
        alt.Tooltip("step:Q", title="Step", format=",d"),
        alt.Tooltip("value:Q", title="Value", format=group.format),
    ]
    repeats = _repeats(group.colors)
    line = base.encode(strokeDash=_dash(group.colors, repeats)) if any(repeats) else base
    return (
        line.mark_line(strokeWidth=2),
        base.mark_circle(size=22, opacity=1),
        base.mark_circle(size=140, opacity=0).encode(tooltip=tooltip),
    )


def _epoch_axis(group: Group) -> dict[str, Any]:
    """Scale and axis of numbers of the epochs."""
    if group.log:
        return {
            "scale": alt.Scale(type="log"),
            "axis": _decades("~e" if group.format.endswith("e") else "~g"),
        }
    scale = (
        alt.Scale(domain=list(group.panel.domain)) if group.panel.domain else alt.Scale(zero=True)
    )
    return (
        {"scale": scale, "axis": alt.Axis(format="%")}
        if group.format.endswith("%")
        else {"scale": scale}
    )


def _step_axis(group: Group) -> dict[str, Any]:
    """Scale and axis of numbers of the steps. Loss scales are powers of two."""
    if group.panel.name == LOSS_SCALES:
        return {"scale": alt.Scale(type="log", base=2), "axis": alt.Axis(format="~s", tickCount=4)}
    if group.log:
        return {"scale": alt.Scale(type="log", nice=False), "axis": charts.log_axis()}
    is_rate = group.format.endswith("e")  # other numbers are written out: 1,500 and 0.02
    plain = alt.Axis(labelExpr=PLAIN_LABELS, tickCount=4)
    axis = {"axis": plain if is_rate else alt.Axis(tickCount=4)}
    return (
        {"scale": alt.Scale(domain=list(group.panel.domain)), **axis}
        if group.panel.domain
        else axis
    )


def _dashed(
    colors: dict[str, str],
    x: alt.X,
    y: alt.Y,
    place: alt.Tooltip,
    value: str,
    form: str,
) -> alt.Chart:
    tooltip = [
        alt.Tooltip("series:N", title="Of"),
        place,
        alt.Tooltip(f"{value}:Q", title="Value", format=form),
    ]
    return (
        alt.Chart()
        .mark_line(strokeWidth=2)
        .encode(
            x=x,
            y=y,
            color=_color(colors),
            strokeDash=_dash(colors, range(len(colors))),
            tooltip=tooltip,
        )
    )


def _x(name: str) -> alt.X:
    axis = alt.Axis(tickMinStep=1, grid=False, format=",d" if name == "step" else "d")
    return alt.X(
        f"{name}:Q", title=name.capitalize(), axis=axis, scale=alt.Scale(zero=False, nice=False)
    )


def _decades(form: str) -> alt.Axis:
    """An axis with a line for each power of ten; Vega would draw one for each digit."""
    return alt.Axis(values=[10.0**power for power in range(-12, 9)], format=form)


def _color(colors: dict[str, str]) -> alt.Color:
    return alt.Color("series:N", title=None, legend=_legend(colors), scale=charts.scale_of(colors))


def _repeats(colors: dict[str, str]) -> list[int]:
    """How many earlier lines have the color of each line."""
    all_colors = list(colors.values())
    return [all_colors[:place].count(color) for place, color in enumerate(all_colors)]


def _dash(colors: dict[str, str], numbers: Iterable[int]) -> alt.StrokeDash:
    """`numbers`: index of the dashes of each line."""
    dashes = [DASHES[number % len(DASHES)] for number in numbers]
    scale = alt.Scale(domain=list(colors), range=dashes)
    return alt.StrokeDash("series:N", title=None, legend=_legend(colors), scale=scale)


def _legend(colors: dict[str, str]) -> alt.Legend | None:
    """The legend; None for one line, which the title names."""
    return (
        charts.fitted_legend(colors, has_dashes=any(_repeats(colors))) if len(colors) > 1 else None
    )


def quality_curve(rows: Rows, metric: Metric, log: bool, height: int = 260) -> alt.LayerChart:
    """The measured quality of a run over its epochs, with its 95% interval as a band and its floor
    dashed.

    `rows`: epoch, value, low, high, floor; all above 0 with `log`.
    """
    name = f"{metric.title} ({metric.unit})" if metric.unit else metric.title
    # A linear axis begins at 0: a single value alone has no range, and its label every digit.
    scale = alt.Scale(type="log" if log else "linear", zero=not log, nice=False, padding=8)

    def of(field: str) -> alt.Y:
        axis = log_axis(",.3~r") if log else alt.Axis(labelExpr=PLAIN_LABELS, tickCount=5)
        return alt.Y(f"{field}:Q", title=None, scale=scale, axis=axis)

    base = alt.Chart().encode(
        x=alt.X(
            "epoch:Q",
            title="Epoch",
            axis=alt.Axis(grid=False, format="d", tickMinStep=1),
            scale=alt.Scale(zero=False, nice=False, padding=8),
        )
    )
    tooltip = [
        alt.Tooltip("epoch:Q", title="Epoch", format="d"),
        alt.Tooltip("value:Q", title=metric.axis, format=metric.format),
        alt.Tooltip("low:Q", title="95% from", format=metric.format),
        alt.Tooltip("high:Q", title="95% to", format=metric.format),
        alt.Tooltip("floor:Q", title="Real against real", format=metric.format),
    ]
    color = palette.SIDES["generated"]
    band = base.mark_area(opacity=0.2, line=False, color=color).encode(
        y=of("low"), y2=alt.Y2("high:Q")
    )
    # A single epoch has no area.
    bars = base.mark_rule(opacity=0.4, strokeWidth=1.5, color=color).encode(
        y=of("low"), y2=alt.Y2("high:Q")
    )
    line = base.mark_line(strokeWidth=2.5, color=color).encode(y=of("value"))
    points = base.mark_circle(size=50, opacity=1, color=color).encode(
        y=of("value"), tooltip=tooltip
    )
    floor = base.mark_line(strokeDash=[5, 4], color=palette.REAL).encode(y=of("floor"))
    return layered(
        rows,
        *(band, bars, floor, line, points),
        # Names are long: in a line each, none is cut in a narrow column.
        title=heading(
            "How good is what it generates?",
            [
                f"{name} (log)" if log else name,
                "Lower is better. Band: 95% interval.",
                "Dashed: real against real.",
            ],
        ),
        description=(
            "Measured quality of what the network generates, with its 95% interval. The dashed"
            " line is the score of real data against other real data."
        ),
        height=height,
    )
