"""Functions that tests/full/benchmarks call in the JAX process to train peers.

Only that process imports this module.
"""

from __future__ import annotations

from typing import Any

import jax
import keras
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from benchmarks import keras_pix2pix_on_jax
from benchmarks.keras_pix2pix_on_jax import PairPeer, State
from gan_runtime.base.fields import SOURCE, TARGET
from gan_runtime.data.contract import DataSet
from gan_runtime.domains.flows import workload
from gan_runtime.spec import RunSpec
from tests.support.engines import jax_side
from tests.support.engines.jax_side import Numbers


class StoredMask(keras.layers.Layer):  # type: ignore[misc]
    """Keeps every value: each side draws its dropout from a different random generator."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        assert rate == 0.0

    def call(self, inputs: Any) -> Any:
        """Returns the inputs unchanged."""
        return inputs


def pix2pix_peer(data: DataSet, options: dict[str, Any], steps: int) -> Numbers:
    """Returns losses of `steps` full-batch steps of the peer, from the engine's initial weights
    with these options and on as many devices.
    """
    spec = RunSpec.parse({"workload": "pix2pix", **options})
    _, state = jax_side.trained("pix2pix", data, (), options)
    keras_pix2pix_on_jax.HardwareDropout = StoredMask  # type: ignore[misc,assignment]
    peer = PairPeer("float32", spec.of_workload)  # type: ignore[arg-type]
    ours = workload.WORKLOAD.networks(spec.of_workload, data.fields)
    for network, (name, of_ours) in zip(peer.pair, ours.items(), strict=True):
        network.set_weights([state[f"{name}/{variable.path}"] for variable in of_ours.weights])
    mesh = Mesh(np.array(jax.devices()[: spec.replicas]), ("batch",))
    everywhere, shared = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in ((), ("batch",)))
    state = jax.device_put(_state(peer), everywhere)
    images = [jax.device_put(data.resident[name], shared) for name in (SOURCE, TARGET)]
    step, losses = jax.jit(peer.step), []
    for _ in range(steps):
        state, of_step = step(state, *images)
        losses.append(np.asarray(of_step))
    generator, discriminator = np.stack(losses, axis=1)
    return {"loss_generator": generator, "loss_discriminator": discriminator}


def _state(peer: PairPeer) -> State:
    return [
        [
            [variable.value for variable in variables]
            for variables in (
                network.trainable_variables,
                network.non_trainable_variables,
                slots.variables,
            )
        ]
        for network, slots in zip(peer.pair, peer.optimizers, strict=True)
    ]
