"""The sections Health and Further numbers of the tab Overview: whether the training is in order, in small charts.

What is drawn follows from what the run's workload declares (gan_runtime/base/metrics.py); a number that nobody has declared is
drawn by itself.
"""

from __future__ import annotations

import streamlit as st

from dashboard import health_charts, plots
from dashboard.panels import Group
from dashboard.run import chart_rows
from dashboard.run.chart_rows import Drawn
from gan_runtime.base.metrics import OTHERS
from gan_runtime.store.queries import RunRow
from gan_runtime.store.store import Store

HELP = (
    "Measured at the end of each epoch on the first 256 images of the set and as many generated ones. Rules of thumb, no "
    "verdict: a GAN is judged by its images."
)


def show(store: Store, row: RunRow) -> None:
    """What is measured once an epoch, then what changes over the steps; numbers without a panel of their own come last."""
    asked = store.lately if row.is_live else store.once
    health = asked(chart_rows.health, row.run_id, row.workload, row.spec)
    if health.has_panels:
        st.header("Health", help=HELP)
        if health.per_epoch and not any(group.per_epoch for group, _ in health.drawn):
            _awaited(row, health.per_epoch)
        _draw(health.drawn, row)
    if health.further:
        st.header(OTHERS)
        _draw(health.further, row)
        if health.left_out:
            st.caption(f"{health.left_out} more numbers can be picked on Compare.")


def _draw(drawn: list[Drawn], row: RunRow) -> None:
    """Two small charts beside each other."""
    for begin in range(0, len(drawn), 2):
        for column, (group, table) in zip(
            st.columns(2, gap="medium"), drawn[begin : begin + 2], strict=False
        ):
            draw = health_charts.over_epochs if group.per_epoch else health_charts.over_steps
            with column:
                plots.kept_chart(draw, table.arrow, f"{'.'.join(group.names)}.{row.run_id}", group)


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
