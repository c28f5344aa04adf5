"""Making another epoch the best checkpoint of a run, by a score that was measured of its epochs."""

from __future__ import annotations

from functools import partial

import streamlit as st

from dashboard import actions, change_buttons, widgets, words
from dashboard.physics import words as physics_words
from dashboard.physics.shown import Shown
from gan_runtime.base.errors import GanRuntimeError
from gan_runtime.base.metrics import Metric
from gan_runtime.catalog import declared
from gan_runtime.commands import checkpoint_requests, commands
from gan_runtime.store import queries
from gan_runtime.store.queries import RunRow
from gan_runtime.supervision.runtime import Runtime


def choose(runtime: Runtime, found: Shown) -> None:
    """One row: run, score, button. Nothing is drawn where no run has two measured epochs whose weights are kept here."""
    offered = {name: _best_epochs(runtime, row) for name, row in found.rows.items()}
    offered = {name: best for name, best in offered.items() if best}
    if not offered:
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = next(iter(offered))
        if len(offered) > 1:
            name = st.selectbox("Run", list(offered), key="physics.best.run", width=220)
        row, best = found.rows[name], offered[name]
        titles = {metric.name: _title(metric) for metric in _qualities(row) if metric.name in best}
        by = st.selectbox(
            "Best checkpoint by",
            list(titles),
            format_func=lambda name: f"{titles[name]}: epoch {best[name][0]}",
            key=f"physics.best.{row.run_id}",
            help=physics_words.BEST_HELP,
            width=420,
        )
        epoch = best[by][0]
        pressed = change_buttons.button(
            f"Keep epoch {epoch} as the best", key="physics.best.keep", icon=":material/star:"
        )
    if pressed and actions.succeeded(
        partial(_keep, runtime, row, epoch, f"{titles[by]} ({best[by][1]:.4g})")
    ):
        runtime.refresh()
        st.toast(f"The best checkpoint of {words.plain(widgets.title(row))} is that of epoch {epoch} now.")


def _keep(runtime: Runtime, row: RunRow, epoch: int, reason: str) -> None:
    commands.keep_best(runtime.home.run_dir(row.run_id), epoch, reason, asker=runtime.asker)


def _best_epochs(runtime: Runtime, row: RunRow) -> dict[str, tuple[int, float]]:
    """By metric: the best epoch and its value; nothing of a run that is not here, or is training."""
    try:
        epochs = checkpoint_requests.choosable(runtime.home.run_dir(row.run_id))
    except GanRuntimeError:
        return {}
    if row.is_live or not epochs:
        return {}
    return queries.best_epochs(runtime.store, row.run_id, [metric.name for metric in _qualities(row)], epochs)


def _qualities(row: RunRow) -> list[Metric]:
    """What was measured of checkpoints first: it is of more showers than what training looks at."""
    return sorted(declared.of(row.workload).qualities, key=lambda metric: metric.role == "quality")


def _title(metric: Metric) -> str:
    return f"{metric.title}, while training" if metric.role == "quality" else metric.title
