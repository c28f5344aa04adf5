"""Stored and loaded weight snapshots of a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gan_runtime.training import checkpoints

STATE = {
    "generator/dense/kernel": np.full((2, 3), 1.0 / 3.0, np.float32),
    "optimizer_generator/dense_kernel_momentum": np.ones((2, 3), np.float32),
    "average/dense/kernel": np.ones((2, 3), np.float32),
    "rate_factor": np.asarray(1.0, np.float32),
    "step": np.asarray(7),
}


def test_only_weights_are_stored_in_half_precision(tmp_path: Path) -> None:
    checkpoints.save_snapshot(tmp_path / "snapshots", STATE, 3)
    snapshots = checkpoints.load_snapshots(tmp_path / "snapshots")
    assert list(snapshots) == [3]
    assert list(snapshots[3]) == ["generator/dense/kernel"]
    np.testing.assert_array_equal(
        snapshots[3]["generator/dense/kernel"], np.full((2, 3), np.float16(1.0 / 3.0), np.float32)
    )


def test_averages_are_stored_on_request_and_surfaces_do_not_read_them(
    tmp_path: Path,
) -> None:
    checkpoints.save_snapshot(tmp_path, STATE, 2)
    checkpoints.save_snapshot(tmp_path, STATE, 3, averages=True)
    assert [checkpoints.has_averages(tmp_path, epoch) for epoch in (2, 3, 4)] == [
        False,
        True,
        False,
    ]
    assert set(checkpoints.load_snapshot(tmp_path, 3)) == {
        "generator/dense/kernel",
        "average/dense/kernel",
    }
    assert set(checkpoints.load_snapshots(tmp_path)[3]) == {"generator/dense/kernel"}


def test_sixty_of_many_snapshots_are_read_including_both_ends(tmp_path: Path) -> None:
    for epoch in range(101):
        checkpoints.save_snapshot(
            tmp_path, {"generator/kernel": np.full((1, 1), epoch, np.float32)}, epoch
        )
    snapshots = checkpoints.load_snapshots(tmp_path)
    assert (len(snapshots), min(snapshots), max(snapshots)) == (60, 0, 100)
    assert snapshots[100]["generator/kernel"][0, 0] == 100.0


def test_a_run_without_snapshots_has_none(tmp_path: Path) -> None:
    assert checkpoints.snapshot_epochs(tmp_path / "snapshots") == []
    assert checkpoints.load_snapshots(tmp_path / "snapshots") == {}


def test_epochs_are_written_as_ranges() -> None:
    sentences = [
        checkpoints.epochs_in_words(there) for there in ([3], [0, 1, 2], [0, 2], [0, 1, 2, 5, 7, 8])
    ]
    assert sentences == [
        "epoch 3",
        "epochs 0 to 2",
        "epochs 0 and 2",
        "epochs 0 to 2, 5 and 7 to 8",
    ]
