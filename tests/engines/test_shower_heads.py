"""Angle and deposit measured on a shower within a step, and their gradients, on both engines."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from gan_runtime.domains.showers import networks
from gan_runtime.domains.showers.features import cells_of, measured_angle
from tests.support.engines.jax_process import JaxProcess
from tests.support.engines.small_showers import small_showers

pytestmark = pytest.mark.usefixtures("cores")
GRID = (6, 7, 5)


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    """Showers (8, 6, 7, 5, 1) as values: one empty, some with empty layers, one with a single cell,
    one almost empty.
    """
    values = small_showers(8, GRID).resident["showers"].astype(np.float32)
    values[1] = 0.0
    values[1, 2, 3, 4] = 5.0
    values[3] *= 1e-30
    return values


def slopes_of_heads(images: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same as `jax_showers.slopes_of_heads`, with TensorFlow."""
    tensor = tf.constant(images)
    with tf.GradientTape() as tape:
        tape.watch(tensor)
        cells = networks.energies(tensor)
        angles, deposits = networks.measured_angle(cells), networks.deposit(cells)
        total = tf.reduce_sum(angles) + tf.reduce_sum(deposits)
    return angles.numpy(), deposits.numpy(), tape.gradient(total, tensor).numpy()


def test_angles_match_the_data_and_are_100_for_empty_showers(images: np.ndarray) -> None:
    angles, deposits, _ = slopes_of_heads(images)
    cells = cells_of(images)
    assert angles[[0, 3]].tolist() == [100.0, 100.0]
    filled = [1, 2, 4, 5, 6, 7]
    assert angles[filled] == pytest.approx(measured_angle(cells)[filled], abs=1e-4)
    assert angles[1] == pytest.approx(np.pi / 2)
    assert deposits == pytest.approx(50.0 * cells.sum(axis=(1, 2, 3, 4)), rel=1e-5)


def test_empty_showers_have_finite_gradients_on_both_engines(
    images: np.ndarray, jax: JaxProcess
) -> None:
    of_tensorflow, of_jax = slopes_of_heads(images), jax("slopes_of_heads", images)
    assert all(np.isfinite(values).all() for values in (*of_tensorflow, *of_jax))
    assert np.abs(of_tensorflow[2]).max() > 1.0
    assert (of_tensorflow[2][0] == 0.0).all()
    for mine, theirs in zip(of_tensorflow, of_jax, strict=True):
        assert mine == pytest.approx(theirs, rel=1e-3, abs=1e-3)
