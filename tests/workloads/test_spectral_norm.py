"""Spectral norm, compared with NumPy's singular values and with Keras' layer, which assigns its
weights.
"""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
from keras import layers

from gan_runtime.workloads.layers import Convolution, SpectralNorm

pytestmark = pytest.mark.usefixtures("cores")
RANDOM = np.random.default_rng(1)


def settled(layer: Any, values: np.ndarray, passes: int = 80) -> np.ndarray:
    """Outputs after `passes` training passes."""
    for _ in range(passes):
        layer(values, training=True)
    return np.asarray(layer(values, training=False))


def test_dense_layer_is_divided_by_its_largest_singular_value() -> None:
    layer = SpectralNorm(layers.Dense(5, use_bias=False), use_bias=False)
    values = RANDOM.normal(size=(7, 12)).astype(np.float32)
    outputs = settled(layer, values)
    kernel = np.asarray(layer.layer.kernel)
    assert outputs == pytest.approx(
        values @ kernel / np.linalg.svd(kernel, compute_uv=False)[0], abs=1e-4
    )


def test_convolution_matches_keras_and_keeps_its_kernel() -> None:
    values = RANDOM.normal(size=(2, 6, 6, 3)).astype(np.float32)
    ours = SpectralNorm(Convolution(4, 3, use_bias=False))
    theirs = layers.SpectralNormalization(layers.Conv2D(4, 3, use_bias=False))
    ours(values)
    theirs(values)
    theirs.layer.set_weights(ours.layer.get_weights())
    before = np.asarray(ours.layer.kernel)
    assert settled(ours, values) == pytest.approx(settled(theirs, values), abs=1e-3)
    assert np.array_equal(np.asarray(ours.layer.kernel), before)


def test_training_pass_runs_one_iteration_and_inference_none() -> None:
    """u = (1, 0) and W = ((3, 1), (0, 2)): v = W u / |W u| = (1, 0), u = W^T v / |W^T v| =
    (3, 1) / sqrt(10).
    """
    layer = SpectralNorm(layers.Dense(2, use_bias=False), use_bias=False)
    layer.build((None, 2))
    layer.layer.kernel.assign([[3.0, 1.0], [0.0, 2.0]])
    layer.direction.assign([1.0, 0.0])
    layer(np.ones((1, 2), np.float32), training=False)
    assert np.asarray(layer.direction).tolist() == [1.0, 0.0]
    outputs = layer(np.float32([[1.0, 0.0]]), training=True)
    assert np.asarray(layer.direction) == pytest.approx(np.float32([3, 1]) / np.sqrt(10), abs=1e-6)
    assert np.asarray(outputs)[0] == pytest.approx(np.float32([3, 1]) / np.sqrt(10), abs=1e-6)


@pytest.mark.parametrize("named", [{"use_bias": True}, {"use_bias": False, "activation": "relu"}])
def test_a_layer_with_bias_or_activation_is_refused(named: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="use a layer with use_bias=False and no activation"):
        SpectralNorm(layers.Dense(3, **named))


def test_spectral_norm_can_be_saved_and_loaded() -> None:
    network = keras.Sequential(
        [keras.Input((4,)), SpectralNorm(layers.Dense(2, use_bias=False), name="norm")]
    )
    again = keras.models.model_from_json(network.to_json())
    again.set_weights(network.get_weights())
    values = RANDOM.normal(size=(3, 4)).astype(np.float32)
    assert np.array_equal(np.asarray(network(values)), np.asarray(again(values)))
