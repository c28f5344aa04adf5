"""The tab Speed and literature of flows: how long training takes, published, measured here, and estimated for a TPU."""

from __future__ import annotations

import contextlib
import json

import pandas as pd
import streamlit as st

from dashboard import plots, run_selection, tables, words
from dashboard.domains.flows import charts as flow_charts
from dashboard.domains.flows import rollouts
from dashboard.evaluation.shown import Shown
from gan_runtime.base.errors import GanRuntimeError
from gan_runtime.commands.runtime import Runtime
from gan_runtime.domains.flows import published as published_times
from gan_runtime.store import queries
from gan_runtime.store.queries import RunRow
from gan_runtime.store.store import Store
from gan_runtime.tpu import check
from gan_runtime.tpu import plan as planning
from gan_runtime.tpu.chips import TOPOLOGIES

COLUMNS = ["How known", "What", "Device", "Batch", "Time"]
TOPOLOGY_NAMES = ("v2:2x2", "v3:2x2", "v4:2x2x1")  # machines like KIT's


def draw(runtime: Runtime, shown: Shown) -> None:
    """The tab: KIT's times as a chart, and all times in one table, each with how it is known."""
    rows = list(shown.runs.values())
    left, right = st.columns(2)
    with left:
        times = pd.DataFrame([vars(one) for one in published_times.TIMES])
        plots.steady_chart(flow_charts.training_times, times, "flow.training_times")
    estimated = predicted(runtime, rows)
    with right:
        table = pd.DataFrame([*measured(runtime.store, rows), *estimated, *published()], columns=COLUMNS)
        tables.show(table, hide_index=True, key="flow.training", height=340)
    lacking = "" if estimated else f" {rollouts.NOT_ESTIMATED}"
    st.caption(f"Dashed: {published_times.SOURCE}. {published_times.SETTING} {rollouts.OTHER_TIMES}{lacking}")


def published() -> list[list[str]]:
    """A row of the table for each published time."""
    return [
        [rollouts.ELSEWHERE, "KIT, 45 epochs", one.device, str(one.batch_size), f"{words.count(one.seconds)} s"]
        for one in published_times.TIMES
    ]  # fmt: skip


def measured(store: Store, rows: list[RunRow]) -> list[list[str]]:
    """A row for each run: the median of its epochs' times."""
    times = queries.epoch_times(store, [row.run_id for row in rows])
    medians, names = times.groupby("run_id")["seconds"].median(), run_selection.unique_names(rows)
    return [
        [
            rollouts.HERE,
            f"{names[row.run_id]}, an epoch",
            _device(row),
            str(row.batch_size_global),
            words.seconds(float(medians[row.run_id])),
        ]
        for row in rows
        if row.run_id in medians.index
    ]


def _device(row: RunRow) -> str:
    replicas = row.replicas * row.workers
    return (
        row.accelerator.upper()
        if replicas == 1
        else f"{row.accelerator.upper()}, {words.things(replicas, 'replica')}"
    )


def predicted(runtime: Runtime, rows: list[RunRow]) -> list[list[str]]:
    """A row for each run and TPU whose compiler has been asked: an epoch by its cycles. Runs whose batch no TPU can share have none."""
    found, names = [], run_selection.unique_names(rows)
    for row in rows:
        for name in TOPOLOGY_NAMES:
            with contextlib.suppress(GanRuntimeError):
                plan = planning.make(json.loads(row.spec), name, sweep=False, home=runtime.home)
                answer = check.newest_progress(runtime.home, plan).first
                if answer is not None and answer.compiled:
                    seconds = answer.epoch_s(plan.steps_per_epoch(answer.point), plan.spec.steps_per_loop)
                    chip = TOPOLOGIES[name].chip.title
                    batch = str(answer.point.batch_size_global)
                    what = f"{names[row.run_id]}, an epoch"
                    found.append([rollouts.ESTIMATED, what, chip, batch, words.seconds(seconds)])
    return found
