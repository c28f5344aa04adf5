"""Stored answers and the evaluations that gave them, read from the tables of each evaluation."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from gan_runtime.base.metrics import NOT_DRAWN, Metric
from gan_runtime.base.options import OptionRecord
from gan_runtime.catalog.evaluation import Evaluation
from gan_runtime.domains.flows import score_metrics as flow_scores
from gan_runtime.domains.showers import score_metrics as shower_scores
from gan_runtime.records.answer import Score
from gan_runtime.store import queries
from gan_runtime.store.store import Store

SHOWERS, FLOWS = "physics", "rollout"
Scores = dict[str, Score]


@dataclass(frozen=True)
class AnswerRow:
    """One stored answer. `samples`: rows that were compared. `about`: what tells it from other answers of its run besides the epoch,
    in words, by what it is about; `facts`: what else is stored of it."""

    run_id: str
    key: str
    epoch: int
    step: int
    checkpoint: str
    samples: int | None = None
    about: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def identity(self) -> tuple[str, str]:
        """No other answer of the evaluation has it."""
        return self.run_id, self.key


EVALUATIONS = {
    SHOWERS: Evaluation(
        name=SHOWERS,
        title="Physics",
        summary="Generated showers next to held-out ones of the data set.",
        verb="Measure showers",
        options=OptionRecord,
        applies=lambda *_: "",
        scores=tuple(
            Metric(score.name, score.title, score.title, NOT_DRAWN, log=score.log, format=score.format, better="lower" if score.better == "lower" else "")
            for score in shower_scores.SCORES
        ),
        work="",
    ),
    FLOWS: Evaluation(
        name=FLOWS,
        title="Flow",
        summary="The model's own frames, fed back to it, next to the flow itself.",
        verb="Run rollout",
        options=OptionRecord,
        applies=lambda *_: "",
        scores=tuple(
            Metric(score.name, score.title, score.axis, NOT_DRAWN, format=score.format, better=score.better)
            for score in flow_scores.SCORES
            if score.name != "probe"
        ),
        work="",
    ),
}  # fmt: skip


def evaluated_runs(store: Store, evaluation: str) -> list[str]:
    """Ids of the runs with an answer, the newest run first."""
    return queries.runs_with_physics(store) if evaluation == SHOWERS else queries.runs_with_flow(store)


def answers(store: Store, evaluation: str, run_ids: list[str]) -> list[AnswerRow]:
    """Of these runs, the newest first."""
    return _of_showers(store, run_ids) if evaluation == SHOWERS else _of_flows(store, run_ids)


def scores(store: Store, evaluation: str, rows: list[AnswerRow]) -> dict[tuple[str, str], Scores]:
    """By answer and name."""
    return _shower_scores(store, rows) if evaluation == SHOWERS else _flow_scores(store, rows)


def _of_showers(store: Store, run_ids: list[str]) -> list[AnswerRow]:
    frame = queries.physics_scores(store, run_ids).drop_duplicates(["run_id", "epoch"])
    rows = [
        AnswerRow(
            row["run_id"],
            str(row["epoch"]),
            int(row["epoch"]),
            int(row["step"]),
            row["checkpoint"],
            int(row["showers"]),
            facts={"layers": row["layers"]},
        )
        for row in frame.to_dict("records")
    ]
    return sorted(rows, key=lambda row: -row.epoch)


def _shower_scores(store: Store, rows: list[AnswerRow]) -> dict[tuple[str, str], Scores]:
    frame = queries.physics_scores(store, list({row.run_id for row in rows}))
    found: dict[tuple[str, str], Scores] = {row.identity: {} for row in rows}
    for row in frame.to_dict("records"):
        numbers = {name: row[name] for name in ("value", "error", "floor", "floor_error")}
        score = Score(name=row["score"], samples=row["showers"], **numbers)
        found[row["run_id"], str(row["epoch"])][score.name] = score
    return found


def _of_flows(store: Store, run_ids: list[str]) -> list[AnswerRow]:
    stored = queries.flows(store, run_ids)
    order = list(dict.fromkeys((row.run_id, row.iteration) for row in stored))
    rows = sorted(stored, key=lambda row: (order.index((row.run_id, row.iteration)), row.way != "map_reduce"))
    return [
        AnswerRow(
            row.run_id,
            f"{row.iteration}.{row.way}",
            row.epoch,
            row.step,
            row.checkpoint,
            row.steps,
            facts=vars(row),
        )
        for row in rows
    ]


def _flow_scores(store: Store, rows: list[AnswerRow]) -> dict[tuple[str, str], Scores]:
    stored = {row.key: row for row in queries.flows(store, list({row.run_id for row in rows}))}
    return {
        row.identity: {
            name: _of_number(name, number)
            for name, number in queries.flow_scores(store, stored[f"{row.run_id}.{row.key}"]).items()
        }
        for row in rows
    }


def _of_number(name: str, number: queries.FlowNumber) -> Score:
    reference = flow_scores.BY_NAME[name].reference if name in flow_scores.BY_NAME else ""
    known = {"replay": number.replay}
    floor = math.nan
    if reference == "truth":
        floor = math.nan if number.reference is None else number.reference
    elif reference:
        known[reference] = number.reference
    return Score(
        name=name,
        value=math.nan if number.value is None else number.value,
        floor=floor,
        baselines={name: value for name, value in known.items() if value is not None},
    )
