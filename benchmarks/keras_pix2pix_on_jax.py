"""The peer of the row `pair_cycles`: Pix2Pix in plain Keras on JAX, for the eight cores of a TPU.

The authors' networks and step: `stateless_call`, one forward pass and two backward passes (two
calls of `jax.grad` would generate the images twice), `stateless_apply` of Adam(2e-4, 0.5), the
batch sharded with `NamedSharding`; the compiler does the rest. Dropout as in keras_on_jax.py. A
step is one program. Loads JAX; the environment of gan_runtime/tpu/check.py must be set first.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import keras
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from benchmarks.keras_on_jax import HardwareDropout
from benchmarks.keras_pix2pix_networks import networks
from gan_runtime.domains.flows.options import Pix2pixOptions

CHANNELS = (3, 3)
GENERATOR, DISCRIMINATOR = 0, 1
Weights = list[Any]
State = list[list[Weights]]  # of G and D: trainable, non-trainable, optimizer variables


class PairPeer:
    """The training step of Pix2Pix, and its compilation."""

    def __init__(self, precision: str, options: Pix2pixOptions) -> None:
        keras.config.set_dtype_policy(precision)
        self._options = options
        self.pair = networks(options, CHANNELS, HardwareDropout)
        self.optimizers = [keras.optimizers.Adam(2e-4, beta_1=0.5) for _ in self.pair]
        for optimizer, network in zip(self.optimizers, self.pair, strict=True):
            optimizer.build(network.trainable_variables)

    def compiled(self, topology: str, batch_size_global: int) -> Any:
        """The step, compiled for all devices of a topology."""
        description = topologies.get_topology_desc(topology_name=topology, platform="tpu")
        mesh = Mesh(np.array(description.devices), ("batch",))
        replicated = NamedSharding(mesh, PartitionSpec())
        sharded = NamedSharding(mesh, PartitionSpec("batch"))

        def shapes(variables: Weights) -> Weights:
            return [
                jax.ShapeDtypeStruct(variable.shape, variable.value.dtype, sharding=replicated)
                for variable in variables
            ]

        state = [
            [
                shapes(network.trainable_variables),
                shapes(network.non_trainable_variables),
                shapes(optimizer.variables),
            ]
            for network, optimizer in zip(self.pair, self.optimizers, strict=True)
        ]
        side = self._options.tile
        images = [
            jax.ShapeDtypeStruct(
                (batch_size_global, side, side, channels), jnp.uint8, sharding=sharded
            )
            for channels in CHANNELS
        ]
        return jax.jit(self.step, donate_argnums=0).lower(state, *images).compile()

    def step(self, state: State, source: Any, target: Any) -> tuple[State, Any]:
        """Updates both networks, each by its own loss; returns the state and the losses."""
        source, target = (values.astype(jnp.float32) / 127.5 - 1.0 for values in (source, target))
        non_trainable = [variables for _, variables, _ in state]

        def losses_of(*weights: Weights) -> tuple[Any, list[Weights]]:
            losses, new_non_trainable = self._losses(list(weights), non_trainable, source, target)
            return jnp.stack(losses), new_non_trainable

        losses, pullback, new_non_trainable = jax.vjp(
            losses_of, *(weights for weights, _, _ in state), has_aux=True
        )
        updated = []
        for index, (weights, _, slots) in enumerate(state):
            gradient = pullback(jax.nn.one_hot(index, len(state)))[index]
            weights, slots = self.optimizers[index].stateless_apply(slots, gradient, weights)
            updated.append([weights, new_non_trainable[index], slots])
        return updated, losses

    def _losses(
        self, weights: list[Weights], non_trainable: list[Weights], source: Any, target: Any
    ) -> tuple[list[Any], list[Weights]]:
        """The losses of G and D, and their new non-trainable variables."""
        generator, discriminator = self.pair
        outputs, new_g = generator.stateless_call(
            weights[GENERATOR], non_trainable[GENERATOR], source, training=True
        )
        new_d = non_trainable[DISCRIMINATOR]
        fake, new_d = discriminator.stateless_call(
            weights[DISCRIMINATOR], new_d, [source, outputs], training=True
        )
        real, new_d = discriminator.stateless_call(
            weights[DISCRIMINATOR], new_d, [source, target], training=True
        )
        bce = keras.losses.BinaryCrossentropy(from_logits=True)
        distance = keras.losses.MeanAbsoluteError()(target, outputs)
        loss_g = bce(jnp.ones_like(fake), fake) + 100.0 * distance
        loss_d = 0.5 * (bce(jnp.ones_like(real), real) + bce(jnp.zeros_like(fake), fake))
        return [loss_g, loss_d], [new_g, new_d]
