"""The latents of the sample grids: stored grids are compared with new ones, so these numbers must never change."""

from __future__ import annotations

import numpy as np
import pytest

from gan_runtime.engines.sample_latents import sample_latents


def test_the_latents_of_a_size_are_these_numbers_for_ever() -> None:
    latents = sample_latents(100)
    assert (latents.shape, latents.dtype) == ((64, 100), np.float32)
    assert list(latents[0, :3]) == pytest.approx([1.7640524, 0.4001572, 0.9787380], abs=1e-7)
    assert list(latents[-1, -3:]) == pytest.approx([0.3426540, -0.0979672, -0.2402446], abs=1e-7)


def test_the_latents_are_standard_normal_and_no_two_are_equal() -> None:
    latents = sample_latents(32)
    assert abs(latents.mean()) < 0.05
    assert abs(latents.std() - 1) < 0.05
    assert len({row.tobytes() for row in latents}) == 64
