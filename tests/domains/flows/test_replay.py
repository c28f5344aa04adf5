"""Replay of the nearest training film: the selected film, its first frame, and its length."""

from __future__ import annotations

import numpy as np
import pytest

from gan_runtime.base.fields import SOURCE, TARGET, pair_fields
from gan_runtime.data.contract import ArraySet
from gan_runtime.domains.flows.fields import LATTICE_STEP, REYNOLDS, flow_fields
from gan_runtime.domains.flows.films import nearest

LENGTHS = {90.0: 6, 95.0: 11, 250.0: 4}  # rows of each training film


def level(reynolds: float, step: int) -> float:
    """The value of every pixel of a frame."""
    return reynolds / 1_000.0 + step / 100.0


def street() -> ArraySet:
    """Films of gray frames of increasing brightness, as version 0.2.0 stored them: without width
    and shift of the obstacle.
    """
    rows = [(reynolds, step) for reynolds, count in LENGTHS.items() for step in range(count)]
    shape = (len(rows), 4, 6)
    arrays = {
        SOURCE: np.ones((*shape, 4), np.float16),
        TARGET: np.ones((*shape, 3), np.float16),
        REYNOLDS: np.array([reynolds for reynolds, _ in rows], np.float32),
        LATTICE_STEP: np.array([24 * step for _, step in rows], np.int32),
    }
    for row, (reynolds, step) in enumerate(rows):
        arrays[SOURCE][row, ..., :3] = level(reynolds, step)
        arrays[TARGET][row] = level(reynolds, step + 1)
    fields = {name: field for name, field in flow_fields(4, 6).items() if name in arrays}
    return ArraySet("street", fields, arrays, "test")


@pytest.mark.parametrize(
    ("near", "steps", "title", "first"),
    [
        ((95.0, 7), 4, "Re 95 from frame 7", 8),
        ((95.0, 5), 6, "Re 95 from frame 5", 6),
        ((250.0, 2), 2, "Re 250 from frame 2", 3),
    ],
)
def test_replay_follows_the_nearest_frame_of_all_training_films(
    near: tuple[float, int], steps: int, title: str, first: int
) -> None:
    first_frame = np.full((4, 6, 3), level(*near) + 0.002, np.float32)
    result = nearest(street(), first_frame, steps, lambda *_: None)
    assert result.title == title
    right = [level(near[0], first + step) for step in range(steps)]
    np.testing.assert_allclose(result.frames[:, 2, 3, 1], right, atol=1e-3)
    assert result.frames.shape == (steps, 4, 6, 3)


def test_replay_of_a_short_film_stops_at_its_end() -> None:
    """The third of 11 rows is the last one that is followed by three quarters of them."""
    first_frame = np.full((4, 6, 3), level(95.0, 4), np.float32)
    result = nearest(street(), first_frame, 100, lambda *_: None)
    assert result.title == "Re 95 from frame 2"
    assert len(result.frames) == 9


def test_replay_of_image_pairs_is_the_target_of_the_nearest_source() -> None:
    random = np.random.default_rng(1)
    arrays = {
        name: random.integers(0, 256, (70, *field.shape), dtype=np.uint8)
        for name, field in pair_fields(8, 8).items()
    }
    data = ArraySet("edges", pair_fields(8, 8), arrays, "test")
    source = arrays[SOURCE][66].astype(np.float32) / 127.5 - 1.0
    result = nearest(data, source + 0.01, 1, lambda *_: None)
    assert result.title == "pair 66"
    np.testing.assert_allclose(
        result.frames[0], arrays[TARGET][66].astype(np.float32) / 127.5 - 1.0, atol=0.01
    )
