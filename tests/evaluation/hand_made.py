"""Surfaces and snapshots written without training."""

from __future__ import annotations

import numpy as np

from gan_runtime.records import journal
from gan_runtime.records.journal import StatusChange, Surface
from gan_runtime.records.run_folder import RunDir
from gan_runtime.training import checkpoints


def surface(network: str, lowest: float) -> Surface:
    """Three points across, two up; the loss grows by one from point to point."""
    loss = [lowest + step for step in range(6)]
    path = {
        "path_epoch": [0, 3],
        "path_x": [1.0, 0.0],
        "path_y": [0.5, 0.0],
        "path_loss": [2.5, 0.5],
    }
    return Surface(
        network=network,
        x=[0.0, 1.0, 2.0],
        y=[0.0, 1.0],
        loss=loss,
        **path,
        share_x=0.75,
        share_y=0.125,
        images=256,
    )  # type: ignore[arg-type]


def keep_three(run: RunDir) -> None:
    """Stores as many snapshots as a surface needs."""
    for epoch in range(3):
        checkpoints.save_snapshot(
            run.snapshots, {"generator/kernel": np.full((1, 1), epoch, np.float32)}, epoch
        )


def ended(run: RunDir) -> RunDir:
    """Marks the run as finished, with three snapshots."""
    journal.append(run.trainer_journal(), 1, StatusChange(status="finished", reason="all done"))
    keep_three(run)
    return run
