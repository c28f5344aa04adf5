"""What was measured of models that were fed with their own pictures, beside the true ones."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from gan_runtime.records.flow import KEPT
from gan_runtime.store.store import Store

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class FlowRow:
    """One way in which a checkpoint was iterated; the fields as in records/flow.py."""

    run_id: str
    iteration: str
    way: str
    measured_at: datetime
    epoch: int
    step: int
    checkpoint: str
    engine: str
    cores: int
    tile: list[int]
    overlap: int
    blend: str
    tiles: int
    grid: list[int]
    reynolds: float | None
    trajectory: int
    start: int
    steps: int
    solver_steps: int | None
    frames: str
    film: str
    obstacle_width: float | None
    replay: str

    @property
    def key(self) -> str:
        """One of its kind in a home."""
        return f"{self.run_id}.{self.iteration}.{self.way}"

    @property
    def is_kept(self) -> bool:
        """Whether its weights are those that the run has kept after an epoch, and no checkpoint's."""
        return self.checkpoint.startswith(KEPT)

    @property
    def own(self) -> dict[str, str]:
        """What tells its rows from those of others, by the names that the queries below use."""
        return {"run": self.run_id, "iteration": self.iteration, "way": self.way}


_COLUMNS = ", ".join(FlowRow.__dataclass_fields__)
_OWN = "run_id = $run AND iteration = $iteration AND way = $way"


def runs_with_flow(store: Store) -> list[str]:
    """Ids of the runs that have been iterated, the newest run first."""
    rows = store.rows(
        "SELECT run_id FROM runs SEMI JOIN flow USING (run_id) ORDER BY created_at DESC, run_id"
    )
    return [run_id for (run_id,) in rows]


def flows(store: Store, run_ids: list[str]) -> list[FlowRow]:
    """Every iteration of these runs and every way of it, those that were measured last first."""
    rows = store.rows(
        f"SELECT {_COLUMNS} FROM flow WHERE list_contains(?, run_id) ORDER BY measured_at DESC, run_id, way",
        [run_ids],
    )
    return [FlowRow(*row) for row in rows]


class FlowNumber(NamedTuple):
    """A single number of an iteration, its reference and that of the replay, None where there is none."""

    value: float | None = None
    reference: float | None = None
    replay: float | None = None


NO_NUMBER = FlowNumber()


def flow_scores(store: Store, row: FlowRow) -> dict[str, FlowNumber]:
    """Single numbers of an iteration by score."""
    rows = store.rows(f"SELECT score, value, reference, replay FROM flow_scores WHERE {_OWN}", row.own)
    return {score: FlowNumber(*map(_known, numbers)) for score, *numbers in rows}


def flow_steps(store: Store, row: FlowRow) -> pd.DataFrame:
    """Numbers by step: score, step, value, persistence, truth, replay (NaN where there is none); the earliest step first."""
    return store.frame(
        f"SELECT score, step, value, persistence, truth, replay FROM flow_steps WHERE {_OWN} ORDER BY score, step",
        row.own,
    )


def flow_stages(store: Store, row: FlowRow) -> pd.DataFrame:
    """Where the time went: stage, number (its place), seconds (of all calls), times (calls), median_s (of one call)."""
    return store.frame(
        f"SELECT stage, number, seconds, times, median_s FROM flow_stages WHERE {_OWN} ORDER BY number",
        row.own,
    )


def _known(number: float | None) -> float | None:
    return None if number is None or number != number else float(number)
