"""The plain Keras 3DGAN is the same GAN: same weights, batch and noise give the same losses,
step after step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gan_runtime.domains.showers import workload
from gan_runtime.domains.showers.entry import ShowerGanOptions, layers
from gan_runtime.engines.inputs import host_values
from tests.support.engines.small_showers import small_showers
from tests.support.engines.step_contexts import alone

pytestmark = pytest.mark.usefixtures("cores")
GRID, LATENT_SIZE, STEPS = (5, 6, 4), 8, 2
# The first steps of RMSprop follow the sign of the gradient, so rounding decides where it is nearly
# zero.
RATE = 1e-4
OPTIONS = ShowerGanOptions(latent_size=LATENT_SIZE, dropout=0.0)


class FixedNoise:
    """The same random numbers for both implementations, in the order of their calls."""

    def __init__(self) -> None:
        self._normal, self._uniform = np.random.default_rng(1), np.random.default_rng(2)

    def normal(self, rows: int, size: int) -> np.ndarray:
        return self._normal.standard_normal((rows, size), np.float32)

    def uniform(self, rows: int, _: int = 1) -> np.ndarray:
        return self._uniform.random((rows, 1), np.float32) / 4.0  # flips a fifth of the labels

    def dropout(self, values: Any, rate: float) -> Any:
        assert rate == 0.0
        return values


def steps_of_ours(networks: dict[str, Any], batch: dict[str, Any]) -> list[dict[str, float]]:
    """Losses of the workload's phases, each followed by its update."""
    import keras
    import tensorflow as tf

    from gan_runtime.workloads.step_context import step_scope

    noise, history = FixedNoise(), []
    optimizers = {name: keras.optimizers.RMSprop(RATE) for name in networks}
    for _ in range(STEPS):
        losses: dict[str, float] = {}
        for phase in workload.WORKLOAD.program(OPTIONS, {}).phases:
            (update,) = phase.updates
            with tf.GradientTape() as tape, step_scope(alone(noise)):
                loss = phase.forward(networks, batch, noise).losses[update.loss]
            weights = networks[update.network].trainable_variables
            optimizers[update.network].apply(tape.gradient(loss, weights), weights)
            losses[update.loss] = float(loss)
        history.append(losses)
    return history


def test_plain_keras_has_the_same_losses() -> None:
    import keras
    import tensorflow as tf

    from benchmarks import keras_showers

    keras.config.set_dtype_policy("float32")
    data = small_showers(8, GRID, first_is_empty=False)
    batch = {
        name: tf.constant(values)
        for name, values in host_values(data.resident, data.fields).items()
    }
    networks = workload.WORKLOAD.networks(OPTIONS, data.fields)
    strategy = tf.distribute.OneDeviceStrategy("CPU:0")
    with strategy.scope():
        plain = keras_showers.networks(layers(OPTIONS, data.fields), GRID, LATENT_SIZE, dropout=0.0)
        model = keras_showers.Keras3dgan(*plain, random=FixedNoise())
        model.compile(keras.optimizers.RMSprop(RATE), keras.optimizers.RMSprop(RATE))
    for ours, theirs in zip(networks.values(), plain, strict=True):
        theirs.set_weights(ours.get_weights())
    steps = [strategy.run(model.train_step, (batch,)) for _ in range(STEPS)]
    history = [{name: float(loss) for name, loss in losses.items()} for losses in steps]
    for ours, theirs in zip(steps_of_ours(networks, batch), history, strict=True):
        assert theirs == pytest.approx(ours, rel=1e-3)
    assert history[0] != pytest.approx(history[1], rel=1e-2), "the updates change them"
