"""The plane of a descent: directions and distances for literal weights."""

from __future__ import annotations

import numpy as np
import pytest

from gan_runtime.evaluation import loss_surface

# Two filters (columns) of two weights each, with norms 2 and 1 at the end.
END = np.array([[2.0, 0.0], [0.0, 1.0]], np.float32)
AXES = {"net/kernel": -1}


def moved(first: float, second: float) -> dict[str, np.ndarray]:
    """The end with the first weight of each filter changed, and a bias, which stays fixed."""
    return {
        "net/kernel": END + np.array([[first, second], [0.0, 0.0]], np.float32),
        "net/bias": np.ones(2, np.float32),
    }


def test_path_lengths_are_in_filter_norms() -> None:
    # Changes of 4 and 1 are 2 norms of the first filter and 1 norm of the second.
    plane = loss_surface.plane_through([moved(4.0, 0.0), moved(0.0, 1.0), moved(0.0, 0.0)], AXES)
    lengths = np.hypot(*plane.path.T)
    np.testing.assert_allclose(lengths, [2 / np.sqrt(2), 1 / np.sqrt(2), 0.0], atol=1e-6)
    assert plane.shares == pytest.approx((0.8, 0.2))


def test_every_path_point_restores_its_weights() -> None:
    snapshots = [moved(4.0, 0.0), moved(1.0, 1.5), moved(0.0, 0.0)]
    plane = loss_surface.plane_through(snapshots, AXES)
    for (x, y), snapshot in zip(plane.path, snapshots, strict=True):
        np.testing.assert_allclose(plane.at(x, y)["net/kernel"], snapshot["net/kernel"], atol=1e-6)


def test_scaling_a_filter_does_not_change_the_path() -> None:
    scale = np.array([[10.0, 0.1]], np.float32)
    snapshots = [moved(4.0, 0.0), moved(1.0, 1.5), moved(0.0, 0.0)]
    scaled = [{**weights, "net/kernel": weights["net/kernel"] * scale} for weights in snapshots]
    plain, other = (
        loss_surface.plane_through(snapshots, AXES),
        loss_surface.plane_through(scaled, AXES),
    )
    np.testing.assert_allclose(np.abs(other.path), np.abs(plain.path), atol=1e-5)
    assert other.shares == pytest.approx(plain.shares)


def test_only_kernels_move() -> None:
    plane = loss_surface.plane_through([moved(4.0, 0.0), moved(0.0, 1.0), moved(0.0, 0.0)], AXES)
    assert list(plane.at(1.0, 1.0)) == ["net/kernel"]


def test_zero_filter_stays_zero() -> None:
    end = {"net/kernel": np.array([[2.0, 0.0], [0.0, 0.0]], np.float32)}
    start = {"net/kernel": np.array([[3.0, 5.0], [0.0, 0.0]], np.float32)}
    middle = {"net/kernel": np.array([[2.0, 0.0], [1.0, 5.0]], np.float32)}
    plane = loss_surface.plane_through([start, middle, end], AXES)
    np.testing.assert_allclose(plane.at(0.5, -0.5)["net/kernel"][:, 1], [0.0, 0.0])


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ([0.0, 1.0], "a plane needs three snapshots, there are 2"),
        ([2.0, 1.0, 0.0], "have not moved in two directions"),
    ],
)
def test_too_few_or_collinear_snapshots_are_refused(changes: list[float], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        loss_surface.plane_through([moved(change, 0.0) for change in changes], AXES)
