"""The plain Keras Pix2Pix is the same GAN: same weights and tiles give the same losses, step
after step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gan_runtime.base.fields import SOURCE, TARGET
from gan_runtime.domains.flows import workload
from gan_runtime.domains.flows.options import Pix2pixOptions
from gan_runtime.engines.inputs import HostNoise, host_values
from tests.support.engines.small_frames import small_flows
from tests.support.engines.step_contexts import alone

pytestmark = pytest.mark.usefixtures("cores")
STEPS = 2
# The first steps of Adam follow the sign of the gradient, so rounding decides where it is nearly
# zero.
RATE = 1e-4
OPTIONS = Pix2pixOptions(tile=16, dropout=0.0)


def adam() -> Any:
    import keras

    return keras.optimizers.Adam(RATE, beta_1=0.5)


def steps_of_ours(
    networks: dict[str, Any], fields: Any, batch: dict[str, Any]
) -> list[dict[str, float]]:
    """Losses of the workload's single phase, followed by both updates."""
    import tensorflow as tf

    from gan_runtime.workloads.step_context import step_scope

    (phase,) = workload.WORKLOAD.program(OPTIONS, fields).phases
    optimizers, history = {name: adam() for name in networks}, []
    for _ in range(STEPS):
        noise = HostNoise(1)  # without effect: images are as large as a tile
        with tf.GradientTape(persistent=True) as tape, step_scope(alone(noise)):
            losses = phase.forward(networks, batch, noise).losses
        gradients = {
            update.network: tape.gradient(
                losses[update.loss], networks[update.network].trainable_variables
            )
            for update in phase.updates
        }
        for name, of_network in gradients.items():
            optimizers[name].apply(of_network, networks[name].trainable_variables)
        history.append({name: float(loss) for name, loss in losses.items()})
    return history


def test_plain_keras_has_the_same_losses() -> None:
    import keras
    import tensorflow as tf

    from benchmarks import keras_pix2pix
    from benchmarks.keras_pix2pix_networks import networks as plain_networks

    keras.config.set_dtype_policy("float32")
    data = small_flows(4, width=16)
    batch = {
        name: tf.constant(values)
        for name, values in host_values(data.resident, data.fields).items()
    }
    networks = workload.WORKLOAD.networks(OPTIONS, data.fields)
    plain = plain_networks(OPTIONS, keras_pix2pix.CHANNELS)
    for ours, theirs in zip(networks.values(), plain, strict=True):
        theirs.set_weights(ours.get_weights())
    model = keras_pix2pix.KerasPix2pix(*plain)
    model.compile(adam(), adam())
    rows = {name: batch[name] for name in (SOURCE, TARGET)}
    steps = [model.train_step(rows) for _ in range(STEPS)]
    history = [{name: float(loss) for name, loss in losses.items()} for losses in steps]
    for ours, theirs in zip(steps_of_ours(networks, data.fields, batch), history, strict=True):
        assert theirs == pytest.approx(ours, rel=1e-4)
    assert history[0] != pytest.approx(history[1], rel=3e-3), "the updates change them"


def test_the_pix2pix_peer_matches_the_default_options() -> None:
    from benchmarks import keras_pix2pix
    from benchmarks.keras_pix2pix_networks import networks

    options = Pix2pixOptions()
    counted = [network.count_params() for network in networks(options, keras_pix2pix.CHANNELS)]
    ours = workload.WORKLOAD.networks(options, small_flows(1).fields)
    assert counted == [network.count_params() for network in ours.values()]
    dropped = [
        layer.rate for layer in networks(options, (4, 3))[0].layers if "dropout" in layer.name
    ]
    assert dropped == [options.dropout] * 3
    assert (
        options.weight_l1,
        options.weight_discriminator,
    ) == (keras_pix2pix.L1_WEIGHT, keras_pix2pix.D_WEIGHT)
    assert np.isclose(keras_pix2pix.LEARNING_RATE, options.learning_rate_generator)
