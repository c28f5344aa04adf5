"""The sections Health and Further numbers of the tab Overview: small charts that show whether
training is healthy.

The run's workload declares what is drawn (gan_runtime/base/metrics.py); an undeclared number has
its own chart.

The rows are read through `Store.once`, so that thirty browsers on one run query them once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import streamlit as st

from dashboard import chart_panels, charts, health_charts, plots, tables
from dashboard.chart_panels import Group
from dashboard.evaluation import answers
from dashboard.tables import Table
from gan_runtime.base.metrics import (
    FAMILIES,
    FURTHER_NUMBERS,
    LEARNING_RATE,
    LOSS_SCALE,
    LOSSES,
    PANELS,
    SCORES,
)
from gan_runtime.catalog import declarations
from gan_runtime.evaluation import training_requests
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store import queries
from gan_runtime.store.queries import RunRow, Window
from gan_runtime.store.store import Store

ChartRows = tuple[Group, Table]
SPIKE, USUAL_SHARE = 20.0, 0.95  # a spike: so many times what that share of all values stay below
MOST_FURTHER = 24  # charts of numbers without a panel: an imported run can have any number


@dataclass(frozen=True)
class Health:
    """The small charts.

    `per_epoch`: all groups measured once an epoch, also before the first epoch; `has_panels`:
    whether there are others than further numbers; `left_out`: how many further numbers are not
    drawn.
    """

    per_epoch: list[Group]
    has_panels: bool
    small_charts: list[ChartRows]
    further: list[ChartRows]
    left_out: int


def curves(
    store: Store, run_id: str, groups: tuple[Group, ...], max_points: int, window: Window
) -> list[ChartRows]:
    """Each group with its smoothed curves within the window, on a logarithmic axis if a spike would
    flatten them.
    """
    names = tuple(name for group in groups for name in group.names)
    frame = queries.curves(store, [run_id], names, max_points=max_points, window=window)
    points = charts.smoothed_points(charts.LIVE_SHARE, max_points)
    rows = charts.with_smoothed(frame.drop(columns="run_id"), points, "metric")
    parts = [(group, rows[rows["metric"].isin(group.names)]) for group in groups]
    return [(_with_spikes(group, part), tables.from_curves(part)) for group, part in parts]


def _with_spikes(group: Group, rows: pd.DataFrame) -> Group:
    if group.log or group.panel.domain or rows.empty or rows["low"].min() <= 0.0:
        return group
    is_spiky = rows["high"].max() > SPIKE * rows["mean"].quantile(USUAL_SHARE)
    return replace(group, log=True, axis=f"{group.axis} (log)") if is_spiky else group


def score_histogram(store: Store, run_id: str, names: tuple[str, ...], epoch: int) -> Table:
    """As `queries.histogram`."""
    return tables.from_frame(queries.histogram(store, run_id, names, epoch))


def quality(store: Store, run_id: str) -> Table:
    """As `queries.qualities`, with intervals cut at what a logarithmic axis can show."""
    rows = queries.qualities(store, [run_id])
    if is_log(rows):
        rows = rows.assign(
            low=charts.drawn_on_log(rows["low"], rows["value"]),
            floor=rows["floor"].where(rows["floor"] > 0),
        )
    return tables.from_frame(rows)


def cautions(store: Store, run_id: str) -> str:
    """As `answers.cautions`, for all evaluations of a run."""
    return answers.cautions(queries.evaluations(store, [run_id]))


def is_measured_while_training(_: Store, home: Home, run: RunDir) -> bool:
    """As `training_requests.is_measured_while_training`."""
    return training_requests.is_measured_while_training(home, run)


def is_log(rows: pd.DataFrame) -> bool:
    """Whether a score has a logarithmic axis: unbiased distances can be negative, and one value has
    no range.
    """
    return bool((rows["value"] > 0).all()) and rows["value"].nunique() > 1


def epoch_times(store: Store, run_id: str) -> Table:
    """As `queries.epoch_times`."""
    return tables.from_frame(queries.epoch_times(store, [run_id]))


def health_rows(store: Store, run_id: str, workload: str, spec: str) -> Health:
    """All charts except the large ones: those of epochs first, then those of standard panels.

    `spec`: the run's options as JSON.
    """
    usual = {panel.name for panel in PANELS}
    table = [
        metric
        for metric in queries.metric_table(store, [run_id]).values()
        if metric.panel not in (LOSSES, SCORES)
    ]
    groups = sorted(
        chart_panels.groups(declarations.of(workload), table),
        key=lambda group: (
            not group.per_epoch,
            not group.per_epoch and group.panel.name not in usual,
        ),
    )
    in_panels = [group for group in groups if group.panel.name != FURTHER_NUMBERS]
    further = [group for group in groups if group.panel.name == FURTHER_NUMBERS]
    constant_panels = constant(json.loads(spec))
    return Health(
        [group for group in in_panels if group.per_epoch],
        bool(in_panels),
        _chart_rows(store, run_id, in_panels, constant_panels),
        _chart_rows(store, run_id, further[:MOST_FURTHER], constant_panels),
        max(0, len(further) - MOST_FURTHER),
    )


def _chart_rows(
    store: Store, run_id: str, groups: list[Group], constant_panels: set[str]
) -> list[ChartRows]:
    """The charts with data, and their rows.

    Numbers that the engine adds are drawn only where they change.
    """
    usual = {panel.name for panel in PANELS}
    steps = [
        group for group in groups if not group.per_epoch and group.panel.name not in constant_panels
    ]
    per_epoch = _names(group for group in groups if group.per_epoch)
    adjusted = _names(group for group in steps if group.panel.name in usual)
    returned = _names(group for group in steps if group.panel.name not in usual)
    frames = [
        *([queries.epoch_scores(store, run_id, per_epoch)] if per_epoch else []),
        *([queries.changing_curves(store, run_id, adjusted)] if adjusted else []),
        *([queries.curves(store, [run_id], returned, max_points=200)] if returned else []),
    ]
    frames_of_groups = [
        (group, frame[frame["metric"].isin(group.names)]) for group in groups for frame in frames
    ]
    return [
        (group, tables.from_curves(health_charts.rows_of(frame, group)))
        for group, frame in frames_of_groups
        if not frame.empty
    ]


def _names(groups: Iterable[Group]) -> tuple[str, ...]:
    return tuple(name for group in groups for name in group.names)


def constant(spec: dict[str, Any]) -> set[str]:
    """The panels of per-step numbers that the options of a run keep constant.

    They need no query, which this page would repeat every second. Missing options of a stored run
    are at their defaults.
    """
    moving = (
        spec.get("learning_rate_schedule", "constant") != "constant"
        or spec.get("warmup_epochs", 0) > 0
    )
    rates = (
        ()
        if moving or spec.get("alarm_action") == "roll_back"
        else (FAMILIES[LEARNING_RATE].panel,)
    )
    scales = () if spec.get("precision") == "mixed_float16" else (FAMILIES[LOSS_SCALE].panel,)
    return {*rates, *scales}


HELP = (
    "Measured after each epoch on the first 256 training images and as many generated ones."
    " These are rules of thumb: judge a GAN by its images."
)


def show(store: Store, row: RunRow) -> None:
    """Numbers of the epochs, then numbers of the steps; numbers without a panel come last."""
    ask = store.lately if row.is_live else store.once
    health = ask(health_rows, row.run_id, row.workload, row.spec)
    if health.has_panels:
        st.header("Health", help=HELP)
        if health.per_epoch and not any(group.per_epoch for group, _ in health.small_charts):
            _placeholder(row, health.per_epoch)
        _draw(health.small_charts, row)
    if health.further:
        st.header(FURTHER_NUMBERS)
        _draw(health.further, row)
        if health.left_out:
            st.caption(f"Open Compare to see {health.left_out} more numbers.")


def _draw(small_charts: list[ChartRows], row: RunRow) -> None:
    """Two small charts side by side."""
    for begin in range(0, len(small_charts), 2):
        for column, (group, table) in zip(
            st.columns(2, gap="medium"), small_charts[begin : begin + 2], strict=False
        ):
            draw = health_charts.over_epochs if group.per_epoch else health_charts.over_steps
            with column:
                plots.cached_chart(
                    draw, table.arrow, f"{'.'.join(group.names)}.{row.run_id}", group
                )


def _placeholder(row: RunRow, groups: list[Group]) -> None:
    """A placeholder as high as the coming charts, so that nothing below them jumps."""
    if not row.is_live:
        st.caption("This run has recorded no scores.")
        return
    height = health_charts.HEIGHT * ((len(groups) + 1) // 2)
    with st.container(
        border=True, height=height, vertical_alignment="center", horizontal_alignment="center"
    ):
        st.caption(
            f"Charts of {_in_words(groups)} appear here after the first epoch.", width="content"
        )


def _in_words(groups: list[Group]) -> str:
    *earlier, last = [group.panel.awaits or group.panel.heading for group in groups]
    return f"{', '.join(earlier)} and {last}" if earlier else last
