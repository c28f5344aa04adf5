"""The project's layers converted to Keras' own: the same outputs in inference, and no class of the
project remains.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

from gan_runtime.domains.showers.networks import LeakyReLU, PeriodicPadding
from gan_runtime.workloads.layers import (
    BatchNorm,
    ConditionalBatchNorm,
    Convolution,
    Convolution1D,
    Convolution3D,
    EnlargedConvolution,
    EnlargedConvolution1D,
    EnlargedConvolution3D,
    ReplicaDropout,
    SpectralNorm,
    TransposedConvolution,
    TransposedConvolution1D,
    TransposedConvolution3D,
    standard_network,
)

ROWS = 3
SERIES, IMAGE, VOLUME = (6, 2), (6, 4, 2), (6, 4, 5, 2)
Layer = Callable[[], keras.layers.Layer]
LAYERS: dict[str, tuple[tuple[int, ...], Layer]] = {
    "batch norm": (IMAGE, BatchNorm),
    "batch norm without gamma": (IMAGE, lambda: BatchNorm(scale=False)),
    "convolution": (IMAGE, lambda: Convolution(3, 3, 2, padding="same", activation="relu")),
    "convolution with zeros": (IMAGE, lambda: Convolution(3, 3, zeros=((1, 2), (0, 1)))),
    "of a series": (SERIES, lambda: Convolution1D(3, 3, zeros=((2, 1),))),
    "of a volume": (VOLUME, lambda: Convolution3D(3, 2, zeros=((1, 0), (0, 2), (1, 1)))),
    "enlarged": (IMAGE, lambda: EnlargedConvolution(3, 3, factors=(2, 3))),
    "enlarged series": (SERIES, lambda: EnlargedConvolution1D(3, 3, factors=(2,))),
    "enlarged volume": (VOLUME, lambda: EnlargedConvolution3D(3, 2, factors=(1, 3, 2))),
    "transposed": (IMAGE, lambda: TransposedConvolution(3, 5, 2, padding="same")),
    "transposed series": (SERIES, lambda: TransposedConvolution1D(3, 5, 2, padding="same")),
    "transposed volume": (VOLUME, lambda: TransposedConvolution3D(3, 3, 2, use_bias=False)),
    "dropout": (IMAGE, lambda: ReplicaDropout(0.5)),
    "spectral norm": (IMAGE, lambda: SpectralNorm(Convolution(3, 3, use_bias=False))),
    "spectral norm of a dense layer": (
        (5,),
        lambda: SpectralNorm(keras.layers.Dense(3, use_bias=False), use_bias=False),
    ),
    "periodic padding": (VOLUME, lambda: PeriodicPadding(((1, 2), (0, 1), (7, 6)), (0, 2))),
    "leaky ReLU of showers": (VOLUME, lambda: LeakyReLU(0.3)),
}


def with_random_weights(network: keras.Model) -> keras.Model:
    """Positive, as variances are. A new batch norm changes nothing, which would hide errors."""
    random = np.random.default_rng(1)
    network.set_weights([random.uniform(0.2, 2.0, array.shape) for array in network.get_weights()])
    return network


def assert_standard(network: keras.Model, inputs: Any) -> None:
    standard = standard_network(with_random_weights(network))
    expected, actual = (np.asarray(each(inputs, training=False)) for each in (network, standard))
    assert expected.std() > 0.01, "the network has nothing to compare"
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)
    modules = {type(layer).__module__ for layer in standard.layers}
    assert all(module.startswith("keras.") for module in modules), modules


@pytest.mark.parametrize("name", LAYERS)
def test_layer_is_replaced_by_keras_layers(name: str) -> None:
    shape, layer = LAYERS[name]
    network = keras.Sequential([keras.Input(shape), layer()])
    values = np.random.default_rng(0).standard_normal((ROWS, *shape)).astype(np.float32)
    assert_standard(network, values)


def test_conditional_batch_norm_becomes_a_norm_and_two_embeddings() -> None:
    values, labels = keras.Input(IMAGE), keras.Input((), dtype="int32")
    network = keras.Model([values, labels], ConditionalBatchNorm(3)([values, labels]))
    rows = np.random.default_rng(0).standard_normal((ROWS, *IMAGE)).astype(np.float32)
    assert_standard(network, [rows, np.array([2, 0, 1], np.int32)])


def test_keras_layers_and_operations_are_kept() -> None:
    values = keras.Input((4,))
    hidden = keras.layers.Dense(3, activation="tanh")(values) * 2.0 + 1.0
    assert_standard(keras.Model(values, hidden), np.eye(ROWS, 4, dtype=np.float32))


def test_layer_without_a_standard_form_is_refused_by_name() -> None:
    class Doubled(keras.layers.Layer):
        def call(self, inputs: Any) -> Any:
            return 2.0 * inputs

    network = keras.Sequential([keras.Input((2,)), Doubled(name="twice")])
    with pytest.raises(ValueError, match=r"twice: Doubled is not a Keras layer: give it a method"):
        standard_network(network)
