"""The sections Health and Further numbers of the Live page: whether the training is in order, in small charts.

What is drawn follows from what the run's workload declares (gan_runtime/metrics.py); a number that nobody has declared is
drawn by itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from dashboard import health_charts, panels, widgets
from dashboard.panels import Group
from gan_runtime.catalog import declared
from gan_runtime.metrics import FAMILIES, LEARNING_RATE, LOSS_SCALE, LOSSES, OTHERS, PANELS, SCORES
from gan_runtime.store import queries
from gan_runtime.store.queries import RunRow
from gan_runtime.store.store import Store

Drawn = tuple[Group, pd.DataFrame]
MOST_FURTHER = 24  # charts of numbers without a panel: an imported run may hold any number of them
HELP = (
    "Measured at the end of each epoch on the first 256 images of the set and as many generated ones. Rules of thumb, no "
    "verdict: a GAN is judged by its images."
)


def show(store: Store, row: RunRow) -> None:
    """What is measured once an epoch, then what changes over the steps; numbers without a panel of their own come last."""
    groups = _groups(store, row)
    health = [group for group in groups if group.panel.name != OTHERS]
    further = [group for group in groups if group.panel.name == OTHERS]
    if health:
        st.header("Health", help=HELP)
        drawn = _with_rows(store, row, health)
        awaited = [group for group in health if group.per_epoch]
        if awaited and not any(group.per_epoch for group, _ in drawn):
            _awaited(row, awaited)
        _draw(drawn, row)
    drawn = _with_rows(store, row, further[:MOST_FURTHER])
    if drawn:
        st.header(OTHERS)
        _draw(drawn, row)
        if len(further) > MOST_FURTHER:
            st.caption(f"{len(further) - MOST_FURTHER} more numbers can be picked on Compare.")


def _groups(store: Store, row: RunRow) -> list[Group]:
    """All charts but the large ones above, those of epochs first."""
    known = declared.of(row.workload)
    table = [
        metric
        for metric in queries.metric_table(store, [row.run_id]).values()
        if metric.panel not in (LOSSES, SCORES)
    ]
    usual = {panel.name for panel in PANELS}
    groups = panels.groups(known, table)
    return sorted(
        groups, key=lambda group: (not group.per_epoch, not group.per_epoch and group.panel.name not in usual)
    )


def _with_rows(store: Store, row: RunRow, groups: list[Group]) -> list[Drawn]:
    """The charts that have something to draw, with their rows. What the engine adds is drawn where it changes."""
    usual, still = {panel.name for panel in PANELS}, constant(json.loads(row.spec))
    steps = [group for group in groups if not group.per_epoch and group.panel.name not in still]
    adjusted = _names(group for group in steps if group.panel.name in usual)
    returned = _names(group for group in steps if group.panel.name not in usual)
    frames = [
        queries.epoch_scores(store, row.run_id, _names(group for group in groups if group.per_epoch)),
        *([queries.changing_curves(store, row.run_id, adjusted)] if adjusted else []),
        *([queries.curves(store, [row.run_id], returned, max_points=200)] if returned else []),
    ]
    drawn = [(group, frame[frame["metric"].isin(group.names)]) for group in groups for frame in frames]
    return [(group, frame) for group, frame in drawn if not frame.empty]


def _names(groups: Iterable[Group]) -> tuple[str, ...]:
    return tuple(name for group in groups for name in group.names)


def _draw(drawn: list[Drawn], row: RunRow) -> None:
    """Two small charts beside each other."""
    for begin in range(0, len(drawn), 2):
        for column, (group, frame) in zip(
            st.columns(2, gap="medium"), drawn[begin : begin + 2], strict=False
        ):
            draw: Callable[..., alt.LayerChart] = (
                health_charts.over_epochs if group.per_epoch else health_charts.over_steps
            )
            with column:
                widgets.steady_chart(
                    partial(draw, group=group), frame, f"{'.'.join(group.names)}.{row.run_id}"
                )


def constant(spec: dict[str, Any]) -> set[str]:
    """Panels of per-step numbers that the options of a run leave as they are. They need no query, and this page asks every second.

    Options that a stored run does not have are at their default.
    """
    moving = spec.get("learning_rate_schedule", "constant") != "constant" or spec.get("warmup_epochs", 0) > 0
    rates = () if moving or spec.get("alarm_action") == "roll_back" else (FAMILIES[LEARNING_RATE].panel,)
    scales = () if spec.get("precision") == "mixed_float16" else (FAMILIES[LOSS_SCALE].panel,)
    return {*rates, *scales}


def _awaited(row: RunRow, groups: list[Group]) -> None:
    """As high as the charts that are to come, so that nothing below them jumps when they do."""
    if not row.is_live:
        st.caption("This run has recorded no scores of an epoch.")
        return
    height = health_charts.HEIGHT * ((len(groups) + 1) // 2)
    with st.container(border=True, height=height, vertical_alignment="center", horizontal_alignment="center"):
        st.caption(f"Charts of {_in_words(groups)} appear here after the first epoch.", width="content")


def _in_words(groups: list[Group]) -> str:
    *others, last = [group.panel.awaits or group.panel.heading for group in groups]
    return f"{', '.join(others)} and {last}" if others else last
