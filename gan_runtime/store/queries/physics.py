"""What was measured of the showers that runs generate, beside real ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gan_runtime.records.answer import ArrayFile
from gan_runtime.store.store import Store

if TYPE_CHECKING:
    import pandas as pd

Bounds = tuple[float, float]


@dataclass(frozen=True)
class ShowerRow:
    """One stored shower. `cells_gev`: float32 (X, Y, Z), its brightest cells; they hold `share` of its energy."""

    pair: int
    side: str
    energy_gev: float
    angle: float | None
    cells_gev: NDArray[np.float32]
    share: float


def runs_with_physics(store: Store) -> list[str]:
    """Ids of the runs whose showers have been measured, the newest run first."""
    rows = store.rows(
        "SELECT run_id FROM runs SEMI JOIN physics USING (run_id) ORDER BY created_at DESC, run_id"
    )
    return [run_id for (run_id,) in rows]


def physics_scores(store: Store, run_ids: list[str]) -> pd.DataFrame:
    """Every score of every measured checkpoint, earliest first: run_id, epoch, step, checkpoint, showers, layers, score, value, error, floor,
    floor_error, images_per_s (of the training, median of its epochs), replicas, batch_size_global."""
    return store.frame(
        """
        SELECT run_id, p.epoch, step, checkpoint, showers, grid[3] AS layers, score, value, error, floor,
               floor_error, images_per_s, replicas, batch_size_global
        FROM physics p JOIN runs USING (run_id) LEFT JOIN (
            SELECT run_id, median(images_per_s) AS images_per_s FROM epochs WHERE list_contains($runs, run_id) GROUP BY run_id
        ) USING (run_id)
        WHERE list_contains($runs, run_id) ORDER BY run_id, step
        """,
        {"runs": run_ids},
    )


def means_of_epoch(store: Store, run_id: str, epoch: int, metrics: list[str]) -> dict[str, float]:
    """Mean over the steps of an epoch of each of these metrics that was stored then."""
    rows = store.rows(
        "SELECT metric, avg(value) FROM scalars WHERE run_id = ? AND epoch = ? AND list_contains(?, metric) GROUP BY metric",
        [run_id, epoch, metrics],
    )
    return dict(rows)


def physics_bins(store: Store, run_id: str, epoch: int) -> tuple[list[Bounds], list[Bounds]]:
    """The bins of incident energy (GeV) and of the angle (rad) of one measurement, in their order; empty without it."""
    found = []
    for name in ("energy", "angle"):
        rows = store.rows(
            f"SELECT DISTINCT {name}_low, {name}_high FROM physics_curves "
            f"WHERE run_id = ? AND epoch = ? AND {name}_low IS NOT NULL ORDER BY 1",
            [run_id, epoch],
        )
        found.append([(low, high) for low, high in rows])
    return found[0], found[1]


def physics_curves(
    store: Store, run_id: str, epoch: int, energy: int | None = None, angle: int | None = None
) -> pd.DataFrame:
    """Curves of one measurement: curve, x, y (of maps, else NaN), real, real_error, generated, generated_error. `energy`, `angle`: the number of a bin of
    `physics_bins`, None for all showers. A combination that no shower has gives an empty frame."""
    return store.frame(
        """
        WITH own AS (
            SELECT *, dense_rank() OVER (ORDER BY energy_low NULLS FIRST) - 2 AS energy,
                   dense_rank() OVER (ORDER BY angle_low NULLS FIRST) - 2 AS angle
            FROM physics_curves WHERE run_id = $run AND epoch = $epoch
        )
        SELECT curve, unnest(x) AS x, unnest(y) AS y, unnest(real) AS real, unnest(real_error) AS real_error,
               unnest(generated) AS generated, unnest(generated_error) AS generated_error
        FROM own WHERE energy = $energy AND angle = $angle
        """,
        {
            "run": run_id,
            "epoch": epoch,
            "energy": -1 if energy is None else energy,
            "angle": -1 if angle is None else angle,
        },
    )


def physics_showers(store: Store, run_id: str, epoch: int) -> list[ShowerRow]:
    """The showers that were kept of one measurement: pair by pair, the real one first."""
    rows = store.rows(
        """
        SELECT pair, side, energy_gev, angle, grid, cells, mev, share FROM physics_showers
        WHERE run_id = ? AND epoch = ? ORDER BY pair, side = 'generated'
        """,
        [run_id, epoch],
    )
    return [
        ShowerRow(pair, side, energy_gev, angle, _cells(grid, cells, mev), share)
        for pair, side, energy_gev, angle, grid, cells, mev, share in rows
    ]


def shower_of(picture: ArrayFile, grid: tuple[int, int, int]) -> ShowerRow:
    """A shower that stands in no table, such as one that a job has just made."""
    facts, cells = picture.facts, _cells(list(grid), picture.places, picture.values)
    return ShowerRow(facts["pair"], picture.name, facts["energy_gev"], facts["angle"], cells, facts["share"])


def _cells(grid: list[int], cells: list[int], mev: list[float]) -> NDArray[np.float32]:
    whole = np.zeros(grid, np.float32)
    whole.reshape(-1)[cells] = np.asarray(mev, np.float32) / 1e3
    return whole
