"""Loss surfaces that were computed from the weights of a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gan_runtime.store.queries.declaring import declared_of
from gan_runtime.store.store import Store


@dataclass(frozen=True)
class SurfaceRow:
    """One network's loss in nats on the plane of its path. `loss`: (len(y), len(x)); the path's lists have one entry a snapshot.

    `share_x`, `share_y`: of all squared movement of the weights, along each axis, 0 to 1. `images`: real ones looked at.
    """

    network: str
    x: list[float]
    y: list[float]
    loss: NDArray[np.float64]
    path_epoch: list[int]
    path_x: list[float]
    path_y: list[float]
    path_loss: list[float]
    share_x: float
    share_y: float
    images: int


def surfaces(store: Store, run_id: str) -> list[SurfaceRow]:
    """The newest surface of each network of a run, in the order of its workload; empty when none was computed."""
    rows = store.rows(
        """
        SELECT network, x, y, loss, path_epoch, path_x, path_y, path_loss, share_x, share_y, images
        FROM surfaces WHERE run_id = ? ORDER BY network
        """,
        [run_id],
    )
    order = [network.name for network in declared_of(store, [run_id]).networks]
    drawn = sorted(rows, key=lambda row: order.index(row[0]) if row[0] in order else len(order))
    return [
        SurfaceRow(network, x, y, np.reshape(loss, (len(y), len(x))), *path)
        for network, x, y, loss, *path in drawn
    ]


def runs_with_descent(store: Store) -> list[str]:
    """Ids of the ended runs that have kept weight snapshots or have a surface, those with one first, then the newest first."""
    rows = store.rows(
        """
        SELECT run_id FROM runs LEFT JOIN (SELECT DISTINCT run_id, true AS drawn FROM surfaces) USING (run_id)
        WHERE drawn OR (spec->>'weight_snapshots' = 'yes' AND status IN ('finished', 'stopped', 'failed', 'lost'))
        ORDER BY drawn NULLS LAST, created_at DESC
        """
    )
    return [run_id for (run_id,) in rows]
