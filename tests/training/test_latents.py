"""Latents of a request: entered seeds, arcs between them, planes, truncation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from gan_runtime.engines.inputs import HostNoise
from gan_runtime.training.latents import LatentNoise, LatentPoints, plane, slerp, strip, truncated

SIZE = 100


def latents(count: int, seed: int = 0) -> np.ndarray:
    return np.random.RandomState(seed).standard_normal((count, SIZE))


def angle_deg(first: np.ndarray, second: np.ndarray) -> float:
    cosine = first @ second / np.linalg.norm(first) / np.linalg.norm(second)
    return math.degrees(math.acos(np.clip(cosine, -1, 1)))


def of_request(points: LatentPoints) -> np.ndarray:
    places = np.arange(points.count)
    return LatentNoise(points, places).normal(points.count, SIZE)


def test_seed_determines_its_latent_regardless_of_other_seeds() -> None:
    drawn = of_request(LatentPoints((3, 17, 3)))
    assert drawn.dtype == np.float32
    np.testing.assert_array_equal(drawn[0], HostNoise(3).normal(1, SIZE)[0])
    np.testing.assert_array_equal(drawn[0], drawn[2])
    np.testing.assert_array_equal(drawn[1], of_request(LatentPoints((17,)))[0])
    assert np.abs(drawn[0] - drawn[1]).max() > 1


def test_rows_share_the_points_of_a_request() -> None:
    points = LatentPoints((0, 1))
    of_two_classes = LatentNoise(points, np.array([0, 1, 0, 1])).normal(4, SIZE)
    np.testing.assert_array_equal(of_two_classes[:2], of_two_classes[2:])


def test_slerp_turns_by_equal_angles_between_two_latents() -> None:
    """Unit vectors at 90°: Shoemake's weights are cos and sin of the share of the angle."""
    first, second = np.eye(SIZE)[:2]
    halfway = slerp(first, second, np.array([0.5]))[0]
    np.testing.assert_allclose(halfway[:2], [math.sqrt(0.5), math.sqrt(0.5)])
    start, end = latents(2)
    end *= np.linalg.norm(start) / np.linalg.norm(end)
    points = slerp(start, end, np.linspace(0, 1, 5))
    np.testing.assert_allclose(points[[0, -1]], [start, end])
    steps = [angle_deg(*pair) for pair in itertools.pairwise(points)]
    np.testing.assert_allclose(steps, angle_deg(start, end) / 4)
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), np.linalg.norm(start))


def test_slerp_of_parallel_latents_is_a_straight_line() -> None:
    start = latents(1)[0]
    np.testing.assert_allclose(slerp(start, 3 * start, np.array([0.5]))[0], 2 * start)


def test_a_strip_passes_its_seeds_in_order() -> None:
    ends = latents(3)
    points = strip(ends, 4)
    assert points.shape == (8, SIZE)
    np.testing.assert_allclose(points[[0, 3, 4, 7]], ends[[0, 1, 1, 2]])


def test_plane_has_its_center_in_the_middle_and_directions_at_the_edges() -> None:
    ends = latents(3)
    points = plane(ends, 5, 90.0).reshape(5, 5, SIZE)
    np.testing.assert_allclose(points[2, 2], ends[0])
    np.testing.assert_allclose(np.linalg.norm(points, axis=-1), np.linalg.norm(ends[0]))
    right, down = points[2, 4], points[4, 2]
    assert angle_deg(right, ends[0]) == pytest.approx(90)
    assert angle_deg(down, right) == pytest.approx(90)
    assert angle_deg(right, ends[1]) < 15, "random latents are nearly at right angles"
    assert angle_deg(down, ends[2]) < 15
    assert angle_deg(points[2, 3], ends[0]) == pytest.approx(45)
    assert angle_deg(points[2, 0], right) == pytest.approx(180), "left is the way back"


def test_a_plane_of_equal_seeds_stays_finite() -> None:
    same = np.repeat(latents(1), 3, axis=0)
    assert np.isfinite(plane(same, 3, 90.0)).all()


def test_truncated_latents_are_truncated_normal_and_keep_their_order() -> None:
    normal = np.random.RandomState(1).standard_normal(20_000)
    cut = truncated(normal, 0.7)
    assert np.abs(cut).max() <= 0.7
    assert stats.kstest(cut, stats.truncnorm(-0.7, 0.7).cdf).pvalue > 0.01
    assert (np.argsort(cut) == np.argsort(normal)).all()
    np.testing.assert_allclose(truncated(normal, 8.0), normal, atol=1e-6)
    with_seeds = of_request(LatentPoints((0, 1), truncation=0.7))
    assert np.abs(with_seeds).max() <= 0.7
