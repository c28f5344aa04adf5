"""Runs in lists and legends: which are listed, and the name, color and verdict of each.

Hidden runs and studies are left out unless the user shows them in this session.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import streamlit as st

from dashboard import option_words, palette, words
from gan_runtime.spec.run_options import HERE
from gan_runtime.store import queries
from gan_runtime.store.queries import RunRow, StudyRow
from gan_runtime.store.store import Store
from gan_runtime.training.verdict import Verdict

SHOW_HIDDEN = "listed.hidden"


def runs(store: Store, run_ids: Collection[str] = ()) -> list[RunRow]:
    """The runs for lists, newest first.

    Runs that wait or train, or are in `run_ids`, are always listed; if none is left, all are.
    """
    return visible_runs(queries.runs(store), run_ids)


def visible_runs(rows: list[RunRow], run_ids: Collection[str] = ()) -> list[RunRow]:
    """These runs without hidden ones, in their order; see `runs`."""
    if st.session_state.get(SHOW_HIDDEN):
        return rows
    return [row for row in rows if not row.hidden or row.is_live or row.run_id in run_ids] or rows


def studies(store: Store, study_id: str = "") -> list[StudyRow]:
    """The studies for lists, newest first.

    A study of hidden runs is left out, unless its id is `study_id` or it is not done.
    """
    rows = queries.studies(store)
    if st.session_state.get(SHOW_HIDDEN):
        return rows
    visible = {row.study_id for row in queries.runs(store) if not row.hidden}
    return [
        row for row in rows if row.study_id in visible or row.study_id == study_id or row.is_live
    ]


def pinned_first(rows: list[RunRow]) -> list[RunRow]:
    """Pinned runs first, otherwise in their order."""
    return sorted(rows, key=lambda row: not row.pinned)


def settings(row: RunRow) -> str:
    """The settings of a run in short: 2 simulated cores · bfloat16 · batch 64."""
    kind = "simulated cores" if row.accelerator == "cpu" else row.accelerator.upper() + "s"
    where = f"{row.replicas} {kind}" if row.replicas > 1 else row.accelerator.upper()
    where = f"{row.workers} workers × {where}" if row.workers > 1 else where
    where = where if row.target == HERE else f"{where} on {row.target}"
    algorithm = " · local SGD" if row.sync_every_steps > 1 else ""
    return (
        f"{row.dataset} · {where} · {option_words.choice(row.precision)} · batch"
        f" {row.batch_size_global}{algorithm}"
    )


def unique_names(rows: list[RunRow]) -> dict[str, str]:
    """run_id → name for legends and tables, with the id if two runs share a name."""
    names = [words.cell(row.name) for row in rows]
    return {
        row.run_id: name if names.count(name) == 1 else f"{name} ({row.run_id})"
        for row, name in zip(rows, names, strict=True)
    }


def colors(rows: list[RunRow]) -> dict[str, str]:
    """run_id → color: the run's own, or another one if an earlier run has that."""
    return dict(
        zip(
            (row.run_id for row in rows), palette.distinct([row.color for row in rows]), strict=True
        )
    )


def verdicts(store: Store, run_ids: Iterable[str], age_s: float = 0.0) -> dict[str, Verdict]:
    """run_id → verdict, the same on every page. `age_s`: allowed age, on a page that redraws."""
    return store.lately(queries.verdicts, tuple(run_ids), age_s=age_s)
