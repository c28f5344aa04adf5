"""Checkpoints on disk: kept, found again, and passed over when damaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gan_runtime.errors import CheckpointError
from gan_runtime.training import checkpoints


def arrays(value: float) -> dict[str, np.ndarray]:
    return {"generator/kernel": np.full((2, 3), value, np.float32), "step": np.asarray(7, np.int64)}


def test_a_checkpoint_comes_back_with_shapes_types_and_place(tmp_path: Path) -> None:
    checkpoints.save(tmp_path, arrays(0.5), step=7, wall_s=1.25, kept=3)
    found = checkpoints.load_newest(tmp_path)
    assert found is not None
    assert (found.step, found.wall_s, found.warnings) == (7, 1.25, ())
    assert found.arrays["step"].shape == ()
    assert found.arrays["step"].dtype == np.int64
    np.testing.assert_array_equal(found.arrays["generator/kernel"], np.full((2, 3), 0.5, np.float32))


def test_only_the_newest_three_are_kept(tmp_path: Path) -> None:
    for step in (1, 2, 3, 4, 5):
        checkpoints.save(tmp_path, arrays(step), step=step, wall_s=0.0, kept=3)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"step-0000000{step}.safetensors" for step in (3, 4, 5)]


def test_a_damaged_newest_one_falls_back_to_the_one_before_and_says_so(tmp_path: Path) -> None:
    checkpoints.save(tmp_path, arrays(1.0), step=1, wall_s=0.0, kept=3)
    newest = checkpoints.save(tmp_path, arrays(2.0), step=2, wall_s=0.0, kept=3)
    newest.write_bytes(newest.read_bytes()[:-5])
    found = checkpoints.load_newest(tmp_path)
    assert found is not None
    assert found.step == 1
    assert "step-00000002.safetensors is damaged" in found.warnings[0]


def test_no_readable_checkpoint_at_all_is_an_error(tmp_path: Path) -> None:
    checkpoints.save(tmp_path, arrays(1.0), step=1, wall_s=0.0, kept=3).write_bytes(b"nothing")
    with pytest.raises(CheckpointError, match="none of the 1 checkpoints"):
        checkpoints.load_newest(tmp_path)


def test_a_new_run_has_no_checkpoint(tmp_path: Path) -> None:
    assert checkpoints.load_newest(tmp_path / "missing") is None


def test_changed_contents_are_found_though_the_file_still_opens(tmp_path: Path) -> None:
    checkpoints.save(tmp_path, arrays(1.0), step=1, wall_s=0.0, kept=3)
    newest = checkpoints.save(tmp_path, arrays(2.0), step=2, wall_s=0.0, kept=3)
    content = bytearray(newest.read_bytes())
    content[-1] ^= 1  # one bit of the last number
    newest.write_bytes(bytes(content))
    found = checkpoints.load_newest(tmp_path)
    assert found is not None
    assert found.step == 1
    assert "its contents have changed since they were written" in found.warnings[0]


def test_the_best_one_stays_and_opens_when_no_other_does(tmp_path: Path) -> None:
    for step, gap in ((1, 0.5), (2, 0.1), (3, 0.3), (4, None)):
        checkpoints.save(tmp_path, arrays(step), step=step, wall_s=0.0, kept=1, gap=gap)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["best.safetensors", "step-00000004.safetensors"]
    (tmp_path / "step-00000004.safetensors").write_bytes(b"")
    found = checkpoints.load_newest(tmp_path)
    assert found is not None
    assert (found.step, found.path.name, len(found.warnings)) == (2, "best.safetensors", 1)
