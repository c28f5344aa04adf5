"""Runs in lists and legends: which are listed, the name, color and alarms of each.

Hidden runs and studies are left out unless the user shows them, in this session.
"""

from __future__ import annotations

import json
from collections.abc import Collection

import streamlit as st

from dashboard import option_words, palette, words
from gan_runtime.base.errors import SpecError
from gan_runtime.base.metrics import Role
from gan_runtime.catalog import declared
from gan_runtime.spec import RunSpec
from gan_runtime.store import queries
from gan_runtime.store.queries import RunRow, StudyRow
from gan_runtime.store.store import Store
from gan_runtime.training import alarms as epoch_alarms
from gan_runtime.training.alarms import Alarm

SHOW_HIDDEN = "listed.hidden"
# Topic of an alarm → whose number raises it, and what is wrong with that network.
ALARMS: dict[str, tuple[Role, str]] = {
    "alarm_collapse": ("spread_of_generated", "{} collapsed"),
    "alarm_d_wins": ("judged_generated", "{} won"),
    "alarm_response": ("response", "{}: wrong response"),
    "alarm_empty": ("empty_rows", "{}: empty outputs"),
}


def runs(store: Store, run_ids: Collection[str] = ()) -> list[RunRow]:
    """The newest first.

    What waits or trains, or is in `run_ids`, is there in any case; so are all, were none
    left.
    """
    return offered(queries.runs(store), run_ids)


def offered(rows: list[RunRow], run_ids: Collection[str] = ()) -> list[RunRow]:
    """Of some runs, in their order, those that `runs` would give were there no others."""
    if st.session_state.get(SHOW_HIDDEN):
        return rows
    return [row for row in rows if not row.hidden or row.is_live or row.run_id in run_ids] or rows


def studies(store: Store, study_id: str = "") -> list[StudyRow]:
    """The newest first.

    One whose runs are all hidden is left out, unless its id is `study_id` or it is not done.
    """
    rows = queries.studies(store)
    if st.session_state.get(SHOW_HIDDEN):
        return rows
    visible = {row.study_id for row in queries.runs(store) if not row.hidden}
    return [
        row for row in rows if row.study_id in visible or row.study_id == study_id or row.is_live
    ]


def pinned_first(rows: list[RunRow]) -> list[RunRow]:
    """In their order otherwise."""
    return sorted(rows, key=lambda row: not row.pinned)


def settings(row: RunRow) -> str:
    """A run in short: 2 simulated cores · bfloat16 · batch 64."""
    kind = "simulated cores" if row.accelerator == "cpu" else row.accelerator.upper() + "s"
    where = f"{row.replicas} {kind}" if row.replicas > 1 else row.accelerator.upper()
    where = f"{row.workers} workers × {where}" if row.workers > 1 else where
    algorithm = " · local SGD" if row.sync_every_steps > 1 else ""
    return (
        f"{row.dataset} · {where} · {option_words.choice(row.precision)} · batch"
        f" {row.batch_size_global}{algorithm}"
    )


def unique_names(rows: list[RunRow]) -> dict[str, str]:
    """run_id → name for legends and tables; the id is added where two runs share a name."""
    names = [words.cell(row.name) for row in rows]
    return {
        row.run_id: name if names.count(name) == 1 else f"{name} ({row.run_id})"
        for row, name in zip(rows, names, strict=True)
    }


def colors(rows: list[RunRow]) -> dict[str, str]:
    """run_id → color: the run's own, or another where one of the runs before it has that."""
    return dict(
        zip(
            (row.run_id for row in rows), palette.distinct([row.color for row in rows]), strict=True
        )
    )


def alarms(store: Store) -> dict[str, list[Alarm]]:
    """run_id → the alarms of its newest epoch; without the runs that have none."""
    return store.lately(_alarms)


def _alarms(store: Store) -> dict[str, list[Alarm]]:
    raised = queries.raised_alarms(store, tuple(ALARMS))
    if not raised:
        return {}
    rows = [row for row in queries.runs(store) if row.run_id in raised]
    newest = {row.run_id: _of_newest_epoch(store, row, raised[row.run_id]) for row in rows}
    return {run_id: of_run for run_id, of_run in newest.items() if of_run}


def _of_newest_epoch(store: Store, row: RunRow, raised: dict[str, str]) -> list[Alarm]:
    """An alarm is logged when it begins, not when it ends: the newest scores decide.

    All alarms ever `raised` (topic → message) where this version cannot read the run's options.
    """
    try:
        spec = RunSpec.parse(json.loads(row.spec))
    except SpecError:
        return [Alarm(topic, message) for topic, message in raised.items()]
    numbers = declared.of(row.workload).metrics
    names = tuple(metric.name for metric in numbers if metric.per_epoch)
    scores = queries.epoch_scores(store, row.run_id, names, max_points=max(1, row.epochs))
    by_epoch: dict[int, dict[str, float]] = {}
    for metric, epoch, value in zip(
        scores["metric"], scores["epoch"], scores["value"], strict=True
    ):
        by_epoch.setdefault(int(epoch), {})[metric] = float(value)
    if not by_epoch:
        return []
    newest = max(by_epoch)
    return epoch_alarms.raised(spec, by_epoch[newest], newest, by_epoch.get(newest - 1))


def alarm_words(workload: str, alarms: Collection[Alarm]) -> str:
    """Such as "generator collapsed, discriminator won"; "" without an alarm."""
    declaration, parts = declared.of(workload), []
    for alarm in alarms:
        role, text = ALARMS[alarm.topic]
        metric = declaration.of_role(role)
        network = (
            declaration.network(metric.network).noun if metric and metric.network else "training"
        )
        parts.append(text.format(network))
    return ", ".join(parts)
