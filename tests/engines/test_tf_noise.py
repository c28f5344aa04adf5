"""The noise of a step: latents of the global batch and masks of each replica, compiled or not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from gan_runtime.engines.tf.inputs import TfStepNoise
from gan_runtime.workloads import mlp_gan
from gan_runtime.workloads.contract import Forward, Program
from gan_runtime.workloads.pair import UnconditionalPair
from tests.support.engines.small_engines import (
    MakeEngine,
    trained,
)

pytestmark = pytest.mark.usefixtures("cores")


def noise(step: int, replica: int, replicas: int, seed: int = 1) -> TfStepNoise:
    return TfStepNoise(seed, tf.constant(step), tf.constant(replica), replicas)


def global_latents(step: int, replicas: int) -> np.ndarray:
    return np.concatenate(
        [
            noise(step, replica, replicas).normal(8 // replicas, 5).numpy()
            for replica in range(replicas)
        ]
    )


@pytest.mark.parametrize("replicas", [2, 4, 8])
def test_global_latents_do_not_depend_on_the_replicas(replicas: int) -> None:
    assert np.array_equal(global_latents(3, replicas), global_latents(3, 1))


@pytest.mark.parametrize("shape", [(), (5,), (2, 3)])
def test_draws_of_any_shape_do_not_depend_on_the_replicas(shape: tuple[int, ...]) -> None:
    def draws(kind: str, replicas: int) -> np.ndarray:
        shares = [getattr(noise(3, replica, replicas), kind) for replica in range(replicas)]
        return np.concatenate([draw(8 // replicas, *shape).numpy() for draw in shares])

    for kind in ("normal", "uniform"):
        assert draws(kind, 1).shape == (8, *shape)
        assert np.array_equal(draws(kind, 2), draws(kind, 1))
        assert len(np.unique(draws(kind, 1))) == draws(kind, 1).size


def test_uniform_draws_cover_zero_to_below_one() -> None:
    many = noise(1, 0, 1).uniform(1_000, 100).numpy()
    assert (many.dtype, many.shape) == (np.float32, (1_000, 100))
    assert 0.0 <= many.min() < 1e-4
    assert 0.9999 < many.max() < 1.0
    assert np.histogram(many, 10, (0.0, 1.0))[0] == pytest.approx(np.full(10, 10_000), rel=0.05)


def test_latents_are_standard_normal_and_differ_by_draw_step_and_seed() -> None:
    many = noise(1, 0, 1).normal(1_000, 100).numpy()
    assert abs(many.mean()) < 0.02
    assert abs(many.std() - 1) < 0.02
    stream = noise(1, 0, 1)
    draws = [
        stream.normal(8, 5).numpy(),
        stream.normal(8, 5).numpy(),
        global_latents(2, 1),
        noise(1, 0, 1, seed=2).normal(8, 5).numpy(),
    ]
    assert all(
        not np.array_equal(first, other)
        for index, first in enumerate(draws)
        for other in draws[:index]
    )


def test_dropout_masks_differ_between_replicas_steps_and_layers() -> None:
    ones, stream = tf.ones([64, 64]), noise(1, 0, 2)
    masks = [
        stream.dropout(ones, 0.3),
        stream.dropout(ones, 0.3),
        noise(1, 1, 2).dropout(ones, 0.3),
        noise(2, 0, 2).dropout(ones, 0.3),
    ]
    dropped = [mask.numpy() == 0 for mask in masks]
    for index, units in enumerate(dropped):
        for other in dropped[:index]:
            # Independent masks agree in 0.3² + 0.7² = 0.58 of the units.
            assert 0.54 < (units == other).mean() < 0.62


def test_dropout_keeps_the_mean_and_drops_the_rate() -> None:
    values = noise(5, 3, 4).dropout(tf.fill([500, 500], 2.0), 0.3).numpy()
    assert abs((values == 0).mean() - 0.3) < 0.005
    assert abs(values.mean() - 2.0) < 0.01
    assert len(np.unique(values)) == 2


@pytest.mark.parametrize("rate", [0.0, 0.001])
def test_tiny_dropout_rate_drops_nothing(rate: float) -> None:
    assert np.array_equal(
        noise(1, 0, 1).dropout(tf.fill([64, 64], 2.0), rate).numpy(), np.full((64, 64), 2.0)
    )


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16])
def test_dropout_keeps_shape_and_precision(dtype: tf.DType) -> None:
    values = noise(1, 0, 1).dropout(tf.ones([3, 5, 7], dtype), 0.3)
    assert (values.shape, values.dtype) == ((3, 5, 7), dtype)


DRAWS: dict[str, Callable[[TfStepNoise], tf.Tensor]] = {
    "normal": lambda stream: stream.normal(8, 5),
    "uniform": lambda stream: stream.uniform(8, 5),
    "dropout": lambda stream: stream.dropout(tf.ones([64, 64]), 0.3),
}


@pytest.mark.parametrize("kind", DRAWS)
def test_compiled_noise_matches_uncompiled_noise(kind: str) -> None:
    def draw(step: tf.Tensor, replica: tf.Tensor) -> tf.Tensor:
        stream = TfStepNoise(1, step, replica, 4)
        stream.normal(8, 5)  # so that the draw is not the first of its stream
        return DRAWS[kind](stream)

    plain, compiled = tf.function(draw), tf.function(draw, jit_compile=True)
    for step, replica in ((0, 0), (3, 1), (1_000_000, 3)):
        numbers = (tf.constant(step), tf.constant(replica))
        assert np.abs(compiled(*numbers).numpy() - plain(*numbers).numpy()).max() < 1e-5


def test_engine_keys_noise_by_step_and_replica(make: MakeEngine) -> None:
    weights = np.random.default_rng(3).standard_normal(1_000).astype(np.float32)

    class Listening(UnconditionalPair):
        """Reports a weighted sum of the units that each replica's dropout keeps."""

        def program(self, options: Any, fields: Any) -> Program:
            (phase,) = super().program(options, fields).phases

            def forward(networks: Any, batch: Any, stream: Any) -> Forward:
                heard = ops.sum(stream.dropout(ops.ones([1_000]), 0.3) * weights)
                return Forward(phase.forward(networks, batch, stream).losses, {"heard": heard})

            return Program((replace(phase, forward=forward),))

    listening = Listening(mlp_gan.LATENT_SIZE, mlp_gan.networks)
    heard = trained(make(2, listening), 1, 2)["heard"]
    expected = [
        np.mean(
            [
                np.sum(noise(step, replica, 2).dropout(tf.ones([1_000]), 0.3).numpy() * weights)
                for replica in (0, 1)
            ]
        )
        for step in range(3)
    ]
    assert heard.tolist() == pytest.approx(expected, abs=1e-3)
