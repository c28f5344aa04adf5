"""The curves of the Compare page: how they are drawn, and which run was clicked last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import pandas as pd
import streamlit as st

from dashboard import plots, run_selection, widgets, words
from dashboard.compare import charts as compare_charts
from dashboard.compare import grouping
from dashboard.compare.charts import CurveStyle, Smoothing, YScale
from dashboard.compare.grouping import Series
from dashboard.frame import places
from gan_runtime.base.metrics import Metric
from gan_runtime.spec import nesting
from gan_runtime.store import queries
from gan_runtime.store.queries import RunRow, XAxis
from gan_runtime.store.store import Store

AXES: dict[XAxis, str] = {
    "step": "Step",
    "epoch": "Epoch",
    "images": "Images",
    "wall_s": "Time",
    "device_s": "Device time",
}
AXIS_HELP = (
    "The default is Epoch if batch sizes differ, and Images if data sets differ too."
    " Images: real images, counted each time a step uses them."
    " Time: seconds in training steps over all attempts, without loading, samples and"
    " checkpoints. Device time: that time × replicas × workers; simulated CPU cores count as"
    " devices."
)
SMOOTHINGS: tuple[Smoothing, ...] = ("none", "light", "strong")
SMOOTHING_HELP = (
    "Bold line: the mean of the last 2% (light) or 10% (strong) of a curve's points. Faint"
    " line: the values. Numbers of an epoch are never smoothed."
)
SCALES: dict[YScale, str] = {"auto": "Auto", "linear": "Linear", "log": "Log"}
SCALE_HELP = (
    "Auto uses a logarithmic axis for numbers that span decades: gradients, updates, loss scales."
)
GROUP_HELP = (
    "Draws one curve for all runs that share a value of this option, or differ only in the seed."
    " The line is their mean; the band spans the lowest to the highest run. The tooltip shows how"
    " many runs have a value at a step."
)
# Names of the controls in the address, so that a link shows what its sender saw.
X, SMOOTHING, Y, BY = "x", "smoothing", "y", "by"
COMPARED = "compare.runs_of_before"  # ids of the runs that this window compared last
Name = TypeVar("Name", bound=str)
MOST_ALONE = 6  # runs with a line each, unless a user wants it
ACROSS = 2  # charts side by side; together they have the points of one full-width chart
CURVES, RESULTS = "curves", "results"  # parts of the page; each remembers its own click


@dataclass(frozen=True)
class Choices:
    """The settings of the curves. `by`: how runs are grouped, as in `grouping.choices`."""

    x: XAxis
    style: CurveStyle
    by: str


def last_compared() -> tuple[str, ...]:
    """The runs that this window compared last, else the run whose page it opened last."""
    run_id = st.session_state.get(places.CHOSEN_RUN, "")
    return tuple(st.session_state.get(COMPARED, (run_id,) if run_id else ()))


def choices(rows: list[RunRow]) -> Choices:
    """One row of controls that never moves. A changed control goes into the address."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        x = _x_axis(rows)
        smoothing = _control(
            "Smoothing",
            {name: name.capitalize() for name in SMOOTHINGS},
            SMOOTHING,
            SMOOTHING_HELP,
            130,
            1,
        )
        y = _control("Y axis", SCALES, Y, SCALE_HELP, 130)
        by = group_by(rows)
    return Choices(x, CurveStyle(smoothing, y), by)


def _x_axis(rows: list[RunRow]) -> XAxis:
    """The picked axis, else the default of these runs."""
    default = usual_axis(rows)
    _follow_default(X, default)
    return _control("X axis", AXES, X, AXIS_HELP, 150, list(AXES).index(default))


def _follow_default(key: str, default: str) -> None:
    """A control that no user has changed takes the default of the runs that are picked now."""
    before = st.session_state.get(f"{key}.usual", default)
    untouched = st.session_state.get(key, before) == before and key not in st.query_params
    if before != default and untouched:
        st.session_state[key] = default
    st.session_state[f"{key}.usual"] = default


def usual_axis(rows: list[RunRow]) -> XAxis:
    """Steps if a step sees equally many images in each run, or an unknown number, else epochs, or
    images if the data sets differ.
    """
    images = {nesting.images_per_step(grouping.full_spec(row)) for row in rows}
    if len(images) == 1 or 0 in images:
        return "step"
    return "epoch" if len({row.dataset for row in rows}) == 1 else "images"


def _control(
    label: str, names: dict[Name, str], key: str, text: str, width: int, default: int = 0
) -> Name:
    value: Name = st.selectbox(
        label,
        tuple(names),
        index=default,
        format_func=lambda name: names[name],
        key=key,
        bind="query-params",
        help=text,
        width=width,
    )
    return value


def group_by(rows: list[RunRow]) -> str:
    """What the runs are grouped by: many runs that differ in their seeds over these.

    Falls back to each run alone if the picked runs do not offer the choice.
    """
    options = grouping.choices(rows)
    is_crowded = len(rows) > MOST_ALONE and grouping.OVER_SEEDS in options
    is_crowded = is_crowded and len(grouping.grouped(rows, grouping.OVER_SEEDS)) < len(rows)
    default = grouping.OVER_SEEDS if is_crowded else grouping.EACH_RUN
    _follow_default(BY, default)
    option = st.selectbox(
        "Group by",
        tuple(options),
        index=list(options).index(default),
        format_func=lambda name: options.get(name, name),
        key=BY,
        bind="query-params",
        help=GROUP_HELP,
        width=230,
        disabled=len(options) == 1,
    )
    return str(option)


def series(rows: list[RunRow], by: str) -> list[Series]:
    """The curves of every chart."""
    return grouping.each_run(rows) if by == grouping.EACH_RUN else grouping.grouped(rows, by)


def legend(lines: list[Series], by: str) -> None:
    """One legend for all charts of the page."""
    widgets.legend({line.name: line.color for line in lines})
    if by != grouping.EACH_RUN:
        st.caption("Line: mean of the runs of a group. Band: lowest to highest run.")


def numbers(store: Store, rows: list[RunRow]) -> dict[str, Metric]:
    """All recorded numbers of the runs, by name: losses first, then those that a user can add."""
    run_ids = [row.run_id for row in rows]
    losses = {loss.name: loss for loss in queries.declared_of(store, run_ids).losses}
    present = set(queries.recorded(store, run_ids))
    metrics = {
        name: metric
        for name, metric in queries.metric_table(store, run_ids).items()
        if name in present
    }
    return losses | metrics


def losses(metrics: dict[str, Metric]) -> list[Metric]:
    """The losses, which come first."""
    return [metric for metric in metrics.values() if metric.role == "loss"]


def more_metrics(metrics: dict[str, Metric]) -> list[Metric]:
    """The numbers that the user adds to the losses."""
    names = st.multiselect(
        "More curves",
        [name for name, metric in metrics.items() if metric.role != "loss"],
        format_func=lambda name: metrics[name].title,
        placeholder="Scores, spread, gradients, updates, learning rates …",
        key="compare.metrics",
    )
    return [metrics[name] for name in names]


def loss_charts(
    store: Store, lines: list[Series], choices: Choices, metrics: list[Metric], most: int
) -> None:
    """The charts below each other over the whole width, so that steps line up; a curve has at most
    `most` points.
    """
    for metric in metrics:
        _curves(store, lines, choices, metric, queries.points_each(len(lines), most))


def more_charts(store: Store, lines: list[Series], choices: Choices, metrics: list[Metric]) -> None:
    """The charts in pairs side by side."""
    points = queries.points_each(ACROSS * len(lines), queries.MOST_EACH)
    for begin in range(0, len(metrics), ACROSS):
        for column, metric in zip(
            st.columns(ACROSS, gap="medium"), metrics[begin : begin + ACROSS], strict=False
        ):
            with column:
                _curves(store, lines, choices, metric, points)


def _curves(
    store: Store, lines: list[Series], choices: Choices, metric: Metric, points: int
) -> None:
    frame = _frame(store, lines, choices, metric.name, points)
    if frame.empty:
        st.info(_no_curve(store, lines, choices, metric))
        return
    drawable = compare_charts.drawable(frame, metric, choices.style.y)
    if drawable.empty:
        st.info(f"{words.plain(metric.title)}: no value is above 0. Set Y axis to Linear.")
        return
    colors = {line.name: line.color for line in lines}
    draw = (
        compare_charts.run_curves
        if choices.by == grouping.EACH_RUN
        else compare_charts.group_curves
    )
    zoom = zoom_key(choices)
    place = plots.place_of(metric.name, zoom)
    plots.chart(
        draw(drawable, colors, choices.x, metric, choices.style),
        key=place,
        on_select=lambda: (
            None if plots.apply_zoom(place, zoom, drawable["x"]) else pick(place, CURVES)
        ),
        selection_mode=[compare_charts.PICK, *plots.PARAMETERS],
    )
    if len(drawable) < len(frame):
        st.caption("A logarithmic axis cannot show values of 0 and below.")


def _no_curve(store: Store, lines: list[Series], choices: Choices, metric: Metric) -> str:
    """Why there is nothing to draw."""
    if plots.zoom_window(zoom_key(choices)) != queries.EVERYTHING:
        return "No run has a value in this range. Press Show everything."
    if metric.name in queries.recorded(store, [run for line in lines for run in line.run_ids]):
        return f"{words.plain(metric.title)}: no value is finite."
    return "No run has finished a step yet. Curves appear here after the first step."


def zoom_key(choices: Choices) -> str:
    """All curves of the page share one zoom for each x axis."""
    return f"compare.{choices.x}"


def _frame(
    store: Store, lines: list[Series], choices: Choices, metric: str, points: int
) -> pd.DataFrame:
    window = plots.zoom_window(zoom_key(choices))
    if choices.by == grouping.EACH_RUN:
        names = {line.run_ids[0]: line.name for line in lines}
        curves = queries.curves(store, list(names), (metric,), choices.x, points, window)
        return curves.assign(run=curves["run_id"].map(names)).drop(columns=["run_id", "metric"])
    groups = {line.name: list(line.run_ids) for line in lines}
    return queries.group_curves(store, groups, metric, choices.x, min(200, points), window)


def pick(key: str, part: str) -> None:
    """Remembers which run or group was clicked in the chart `key` of a part; a click next to the
    curves clears it.
    """
    clicked = st.session_state[key]["selection"].get(compare_charts.PICK, [])
    st.session_state[f"compare.picked.{part}"] = clicked[0].get("run") if clicked else None


def picked_runs(rows: list[RunRow], lines: list[Series], part: str) -> None:
    """Links to the runs of the last click in a part; before a click, a hint."""
    name = st.session_state.get(f"compare.picked.{part}")
    single = {line.name: line for line in grouping.each_run(rows)}
    clicked = single.get(str(name)) or next((line for line in lines if line.name == name), None)
    if clicked is None:
        st.caption("Click a curve or a point to see its run and open it.")
        return
    rows_by_id = {row.run_id: row for row in rows}
    names = run_selection.unique_names(rows)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(
            f":color[■]{{foreground='{clicked.color}'}} **{words.plain(clicked.name)}**",
            width="content",
        )
        for run_id in clicked.run_ids:
            label = f"Open {words.plain(names[run_id])} · {rows_by_id[run_id].status}"
            st.page_link(
                places.RUN,
                label=label,
                icon=":material/monitoring:",
                query_params={"run": run_id},
                width="content",
            )
