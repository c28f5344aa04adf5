"""Loss surfaces in real processes, from training with weight snapshots to the database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gan_runtime.records.home import Home
from gan_runtime.store import ingest, queries
from gan_runtime.training import checkpoints
from tests.support.commands_in_processes import Start, starting

SMALL = (
    "workload=mlp_gan",
    "dataset=digits",
    "epochs=2",
    "batch_size_global=256",
    "weight_snapshots=yes",
)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts commands on a home in a temporary folder."""
    with starting(tmp_path) as begin:
        yield begin


def finished(start: Start, *words: str) -> str:
    """Runs a command that must succeed; returns its output."""
    process = start(*words)
    output, notes = process.communicate(timeout=240)
    assert process.returncode == 0, notes
    return output


def test_run_with_weight_snapshots_gets_its_loss_surfaces(start: Start, tmp_path: Path) -> None:
    finished(start, "train", *(part for option in SMALL for part in ("--set", option)))
    assert checkpoints.snapshot_epochs(tmp_path / "runs" / "run-0001" / "snapshots") == [0, 1, 2]
    assert "the loss surfaces of run-0001 are computed" in finished(
        start, "evaluate", "run-0001", "loss_surface", "--set", "size=5"
    )

    store = ingest.store_of(Home(tmp_path))
    assert queries.runs_with_descent(store) == ["run-0001"]
    generator, discriminator = queries.surfaces(store, "run-0001")
    assert (generator.network, discriminator.network) == ("generator", "discriminator")
    assert generator.loss.shape == (5, 5)
    assert generator.path_epoch == [0, 1, 2]
    assert (generator.path_x[-1], generator.path_y[-1]) == (0.0, 0.0)
    assert generator.share_x + generator.share_y == pytest.approx(
        1.0
    )  # three snapshots span no more than a plane
    # Both paths end at the same two networks: D's gain is G's loss.
    assert 0.0 < discriminator.path_loss[-1] < 16.0
    assert np.isfinite(generator.loss).all()
    assert np.ptp(generator.loss) > 0.0
    [job] = store.rows("SELECT kind, state, asked_by, run_id, message FROM jobs")
    assert job == ("loss_surface", "finished", "command line", "run-0001", "done")
    assert (
        queries.events(store, "run-0001")["message"].iloc[-1]
        == "loss-surface-0001 is finished: done"
    )
