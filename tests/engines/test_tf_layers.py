"""Layers on TensorFlow match Keras' own: series, images and volumes, values and gradients,
float32.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from gan_runtime.engines.tf.inputs import TfStepNoise
from gan_runtime.engines.tf.kernels import PlainKernels, TfCpuKernels
from gan_runtime.engines.tf.step import replica_id
from gan_runtime.engines.tf.strategy import make_strategy
from gan_runtime.spec import RunSpec
from gan_runtime.workloads.layers import (
    BatchNorm,
    ConditionalBatchNorm,
    Convolution3D,
    ReplicaDropout,
)
from gan_runtime.workloads.step_context import step_scope
from tests.support.engines import keras_layers
from tests.support.engines.small_engines import keep_alive

pytestmark = pytest.mark.usefixtures("cores")
LARGEST = 1e-5  # relative to the largest number
KERNELS = {
    "cpu": TfCpuKernels(),
    "spectral": TfCpuKernels(spectral_saving=0.0),
    "plain": PlainKernels(),
}


@pytest.fixture(autouse=True)
def plain_float32() -> None:
    """Resets the policy that an engine of another test may have set."""
    keras.config.set_dtype_policy("float32")


def differentiated(layer: Any, inputs: list[np.ndarray], upstream: np.ndarray) -> list[np.ndarray]:
    """A `keras_layers.Differentiated` that also returns the stored statistics."""
    first, *rest = (tf.constant(value) for value in inputs)
    with tf.GradientTape() as tape:
        tape.watch(first)
        all_inputs = [first, *rest] if rest else first
        outcome = (
            layer(all_inputs, training=True) if layer.non_trainable_variables else layer(all_inputs)
        )
        total = tf.reduce_sum(outcome * upstream)
    gradients = tape.gradient(total, [first, *layer.trainable_variables])
    stored = [np.asarray(variable) for variable in layer.non_trainable_variables]
    return [outcome.numpy(), *(tf.convert_to_tensor(value).numpy() for value in gradients), *stored]


def assert_same(values: dict[str, dict[str, float]]) -> None:
    assert {
        case: apart for case, apart in values.items() if not max(apart.values()) <= LARGEST
    } == {}


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("kind", ["convolution", "transposed"])
def test_convolutions_match_keras(kind: str, axes: int) -> None:
    assert_same(keras_layers.convolutions(kind, axes, KERNELS, differentiated))


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_enlarged_convolution_matches_keras_upsampling(axes: int) -> None:
    kernels = {"plain": PlainKernels(), "cpu": TfCpuKernels(), "outside a step": None}
    assert_same(keras_layers.enlarged_convolutions(axes, kernels, differentiated))


def test_options_without_a_kernel_match_keras() -> None:
    assert_same(keras_layers.other_options(KERNELS, differentiated))


@pytest.mark.parametrize("axes", [0, 1, 2, 3])
def test_batch_norm_matches_keras_in_any_dimension(axes: int) -> None:
    kernels = {str(synchronised): PlainKernels(synchronised) for synchronised in (False, True)}
    assert_same(keras_layers.norms(axes, kernels, differentiated))


def test_frozen_batch_norm_keeps_its_statistics() -> None:
    layer = BatchNorm()
    layer.build((None, 2))
    layer.trainable = False
    with keras_layers.using(PlainKernels()):
        outcome = layer(keras_layers.random(5, 2), training=True)
    assert np.abs(np.asarray(outcome) - keras_layers.random(5, 2) / np.sqrt(1.001)).max() < 1e-6
    assert np.asarray(layer.moving_mean).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("shape", [(), (3, 2)])
def test_conditional_batch_norm_on_two_replicas_is_whole_batch(
    shape: tuple[int, ...], new_group: Callable[[], None]
) -> None:
    new_group()
    strategy = keep_alive(make_strategy(RunSpec.parse({"replicas": 2}), "cpu"))
    values, upstream = (keras_layers.random(2, 3, *shape, 4, seed=seed) for seed in (1, 2))
    labels = np.int32([[0, 2, 2], [1, 0, 2]])
    with strategy.scope():
        layer = ConditionalBatchNorm(3)
        layer.build(((3, *shape, 4), (3,)))
    for seed, variable in enumerate(layer.trainable_variables):
        variable.assign(keras_layers.random(3, 4, seed=seed))

    def on_a_replica() -> list[tf.Tensor]:
        rows, numbers = tf.constant(values)[replica_id()], tf.constant(labels)[replica_id()]
        with tf.GradientTape() as tape, keras_layers.using(PlainKernels(synchronised=True)):
            tape.watch(rows)
            outcome = layer([rows, numbers], training=True)
            total = tf.reduce_sum(outcome * tf.constant(upstream)[replica_id()])
        return [outcome, *tape.gradient(total, [rows, *layer.trainable_variables])]

    outcome, by_values, by_gamma, by_beta = map(
        strategy.experimental_local_results, tf.function(lambda: strategy.run(on_a_replica))()
    )
    result = [tf.concat(outcome, 0), tf.concat(by_values, 0), tf.add_n(by_gamma), tf.add_n(by_beta)]
    whole = ConditionalBatchNorm(3)
    whole.build(((6, *shape, 4), (3,)))
    whole.set_weights(
        [np.asarray(variable) for variable in layer.weights[:2]] + whole.get_weights()[2:]
    )
    with keras_layers.using(PlainKernels()):
        inputs = [values.reshape(6, *shape, 4), labels.ravel()]
        expected = differentiated(whole, inputs, upstream.reshape(6, *shape, 4))
    for value, other in zip(result, expected, strict=False):
        assert np.abs(value.numpy() - other).max() <= LARGEST * max(1.0, np.abs(other).max())
    stored = [np.asarray(variable) for variable in layer.non_trainable_variables]
    for value, other in zip(stored, expected[4:], strict=True):
        assert np.abs(value - other).max() <= LARGEST


@pytest.mark.parametrize("precision", ["mixed_bfloat16", "mixed_float16"])
def test_volume_convolution_has_finite_gradients_in_half_precision(precision: str) -> None:
    layer = Convolution3D(3, 3, 2, padding="same", dtype=precision)
    layer.build((2, 6, 5, 4, 2))
    with keras_layers.using(TfCpuKernels()):
        narrow = differentiated(
            layer, [keras_layers.random(2, 6, 5, 4, 2)], np.ones((2, 3, 3, 2, 3), "f2")
        )
    assert [value.dtype.name for value in narrow[2:]] == ["float32", "float32"]
    assert all(np.isfinite(value.astype(np.float32)).all() for value in narrow)


@pytest.mark.parametrize("shape", [(500,), (50, 10), (10, 25, 2), (5, 5, 10, 2)])
def test_dropout_masks_every_unit_in_any_shape(shape: tuple[int, ...]) -> None:
    noise = TfStepNoise(1, tf.constant(0), tf.constant(0), 1)
    with step_scope(SimpleNamespace(noise=noise)):  # type: ignore[arg-type]
        result = ReplicaDropout(0.3)(tf.ones((8, *shape)), training=True).numpy()
    assert result.shape == (8, *shape)
    assert np.unique(result).tolist() == pytest.approx([0.0, 256 / 179])
    assert len({row.tobytes() for row in result}) == 8
    assert not np.array_equal(result[..., 0], result[..., 1])
    assert abs((result > 0).mean() - 179 / 256) < 0.03
