"""Checkpoints on disk: retention, loading, and damaged files."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors import SafetensorError
from safetensors.numpy import save_file

from gan_runtime.base import disk
from gan_runtime.base.errors import CheckpointError, HomeError
from gan_runtime.training import checkpoints

# The digests of `arrays(value)` as earlier versions wrote them.
EARLIER_DIGESTS = {1.0: "57804cf1523052add867befdee20761a", 2.0: "9a63831271f452899ea8ded35e8069e0"}


def arrays(value: float) -> dict[str, np.ndarray]:
    return {"generator/kernel": np.full((2, 3), value, np.float32), "step": np.asarray(7, np.int64)}


def test_a_checkpoint_loads_with_its_shapes_types_and_step(tmp_path: Path) -> None:
    checkpoints.save(tmp_path, arrays(0.5), step=7, wall_s=1.25, retained=3)
    checkpoint = checkpoints.load_newest(tmp_path)
    assert checkpoint is not None
    assert (checkpoint.step, checkpoint.wall_s, checkpoint.warnings) == (7, 1.25, ())
    assert checkpoint.arrays["step"].shape == ()
    assert checkpoint.arrays["step"].dtype == np.int64
    np.testing.assert_array_equal(
        checkpoint.arrays["generator/kernel"], np.full((2, 3), 0.5, np.float32)
    )


def test_only_the_newest_three_are_retained(tmp_path: Path) -> None:
    for step in (1, 2, 3, 4, 5):
        checkpoints.save(tmp_path, arrays(step), step=step, wall_s=0.0, retained=3)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"step-0000000{step}.safetensors" for step in (3, 4, 5)
    ]


def test_damaged_newest_checkpoint_warns_and_falls_back_to_the_previous(tmp_path: Path) -> None:
    checkpoints.save(tmp_path, arrays(1.0), step=1, wall_s=0.0, retained=3)
    newest = checkpoints.save(tmp_path, arrays(2.0), step=2, wall_s=0.0, retained=3)
    newest.write_bytes(newest.read_bytes()[:-5])
    checkpoint = checkpoints.load_newest(tmp_path)
    assert checkpoint is not None
    assert checkpoint.step == 1
    assert "step-00000002.safetensors is damaged" in checkpoint.warnings[0]


@pytest.mark.parametrize(
    "name",
    [
        "step-00000168 (copy).safetensors",
        "step-.safetensors",
        "step-9.safetensors",
        "step-0000000009.safetensors",
        "step-\u0661\u0662\u0663\u0664\u0665\u0666\u0667\u0668.safetensors",
        "step-00000009.safetensors.bak",
    ],
)
def test_files_with_other_names_are_not_checkpoints(tmp_path: Path, name: str) -> None:
    saved = checkpoints.save(tmp_path, arrays(1.0), step=7, wall_s=0.0, retained=3)
    (tmp_path / name).write_bytes(saved.read_bytes())
    os.mkfifo(tmp_path / "step-00000008.safetensors")
    checkpoint = checkpoints.load_newest(tmp_path)
    assert checkpoint is not None
    assert (checkpoint.step, checkpoint.warnings, checkpoints.steps(tmp_path)) == (
        7,
        (),
        {"newest": 7},
    )
    checkpoints.save(tmp_path, arrays(2.0), step=9, wall_s=0.0, retained=1)
    assert (tmp_path / name).exists()


def test_no_readable_checkpoint_is_an_error(tmp_path: Path) -> None:
    checkpoints.save(tmp_path, arrays(1.0), step=1, wall_s=0.0, retained=3).write_bytes(b"nothing")
    with pytest.raises(CheckpointError, match="none of the 1 checkpoints"):
        checkpoints.load_newest(tmp_path)


def test_a_new_run_has_no_checkpoint(tmp_path: Path) -> None:
    assert checkpoints.load_newest(tmp_path / "missing") is None


def test_changed_contents_are_detected_although_the_file_opens(tmp_path: Path) -> None:
    checkpoints.save(tmp_path, arrays(1.0), step=1, wall_s=0.0, retained=3)
    newest = checkpoints.save(tmp_path, arrays(2.0), step=2, wall_s=0.0, retained=3)
    content = bytearray(newest.read_bytes())
    content[-1] ^= 1  # one bit of the last number
    newest.write_bytes(bytes(content))
    checkpoint = checkpoints.load_newest(tmp_path)
    assert checkpoint is not None
    assert checkpoint.step == 1
    assert "its contents have changed since they were written" in checkpoint.warnings[0]


def test_a_flipped_bit_anywhere_is_detected(tmp_path: Path) -> None:
    checkpoints.save(tmp_path, arrays(1.0), step=1, wall_s=0.5, retained=3)
    newest = checkpoints.save(tmp_path, arrays(2.0), step=2, wall_s=1.5, retained=3, shortfall=0.25)
    (tmp_path / checkpoints.BEST).unlink()
    whole = newest.read_bytes()
    unseen = []
    for place in range(len(whole)):
        for bit in range(8):
            newest.write_bytes(
                whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :]
            )
            checkpoint = checkpoints.load_newest(tmp_path)
            if (
                checkpoint is None
                or checkpoint.step != 1
                or newest.name not in checkpoint.warnings[0]
            ):
                unseen.append((whole[max(0, place - 9) : place], place, bit))
    assert not unseen, (
        "in the numbers, their names, types and shapes, the step, the time or the digest itself"
    )


def test_files_of_earlier_versions_load_with_an_old_digest_or_none(
    tmp_path: Path,
) -> None:
    weights = arrays(1.0)
    path, metadata = tmp_path / "step-00000007.safetensors", {"step": "7", "wall_s": "1.25"}
    for digest in ({}, {"digest": EARLIER_DIGESTS[1.0]}):
        save_file(weights, path, metadata=metadata | digest)
        checkpoint = checkpoints.load_newest(tmp_path)
        assert checkpoint is not None
        assert (checkpoint.step, checkpoint.wall_s, checkpoint.warnings) == (7, 1.25, ())
    save_file(weights, path, metadata=metadata | {"digest": EARLIER_DIGESTS[2.0]})
    with pytest.raises(CheckpointError, match="none of the 1 checkpoints"):
        checkpoints.load_newest(tmp_path)


def test_best_checkpoint_is_kept_and_loads_when_no_other_does(tmp_path: Path) -> None:
    for step, gap in ((1, 0.5), (2, 0.1), (3, 0.3), (4, None)):
        checkpoints.save(tmp_path, arrays(step), step=step, wall_s=0.0, retained=1, shortfall=gap)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "best.safetensors",
        "step-00000004.safetensors",
    ]
    (tmp_path / "step-00000004.safetensors").write_bytes(b"")
    checkpoint = checkpoints.load_newest(tmp_path)
    assert checkpoint is not None
    assert (checkpoint.step, checkpoint.path.name, len(checkpoint.warnings)) == (
        2,
        "best.safetensors",
        1,
    )


def test_newest_and_best_checkpoints_load(tmp_path: Path) -> None:
    assert checkpoints.steps(tmp_path) == {}
    for step, gap in ((1, 0.5), (2, 0.1), (3, 0.3)):
        checkpoints.save(tmp_path, arrays(step), step=step, wall_s=0.0, retained=1, shortfall=gap)
    assert checkpoints.steps(tmp_path) == {"newest": 3, "best": 2}
    assert (checkpoints.load(tmp_path, "newest").step, checkpoints.load(tmp_path, "best").step) == (
        3,
        2,
    )
    (tmp_path / checkpoints.BEST).write_bytes(b"")
    assert checkpoints.steps(tmp_path) == {"newest": 3}
    with pytest.raises(
        CheckpointError, match=r"best.safetensors is not usable \(.+\): use the newest"
    ):
        checkpoints.load(tmp_path, "best")
    with pytest.raises(
        CheckpointError, match=r"there is no checkpoint in .+/none: train for an epoch first"
    ):
        checkpoints.load(tmp_path / "none", "newest")


def test_missing_disk_space_is_reported_before_a_checkpoint_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = {"weights": np.zeros(1_000_000, np.float32)}
    checkpoints.save(tmp_path, weights, step=1, wall_s=1.0, retained=3)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=3_000_000))
    with pytest.raises(
        HomeError,
        match=(
            rf"the disk of {tmp_path} has 3 MB left, but the checkpoint after step 2 needs 4 MB:"
            r" free"
        ),
    ):
        checkpoints.save(tmp_path, weights, step=2, wall_s=2.0, retained=3)
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000001.safetensors"]


@pytest.mark.parametrize(
    "error",
    [
        SafetensorError(
            "Error while serializing: I/O error: No space left on device (os error 28)"
        ),
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        RuntimeError("RESOURCE_EXHAUSTED: /x: No space left on device"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_full_disk_gives_the_same_message_for_every_error_type(
    tmp_path: Path, error: Exception
) -> None:
    with (
        pytest.raises(HomeError, match=rf"^the disk of {tmp_path} is full: free space on it"),
        disk.full_disk_as_home_error(tmp_path),
    ):
        raise error


def test_other_errors_are_raised_unchanged(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no such layer"), disk.full_disk_as_home_error(tmp_path):
        raise ValueError("no such layer")
