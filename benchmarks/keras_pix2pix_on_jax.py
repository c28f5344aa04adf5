"""The peer of Pix2Pix' cycles: the authors' networks and step in plain Keras on JAX, for the eight
cores of a TPU.

`stateless_call`, one forward pass with two ways back (two `jax.grad` would make the images twice),
`stateless_apply` of Adam(2e-4, 0.5), the batch shared with `NamedSharding`: the rest is left to the
compiler. Dropout as in keras_on_jax.py. One step is one program. Loads JAX; the environment of
gan_runtime/tpu/check.py must be set before.
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
from gan_runtime.domains.flows.entry import Pix2pixOptions

CHANNELS = (3, 3)
GENERATOR, DISCRIMINATOR = 0, 1
Weights = list[Any]
State = list[list[Weights]]  # of G and D: weights, other variables, the optimizer's


class PairPeer:
    """The program of a step and the shapes of its arguments."""

    def __init__(self, precision: str, options: Pix2pixOptions) -> None:
        keras.config.set_dtype_policy(precision)
        self._options = options
        self.pair = networks(options, CHANNELS, HardwareDropout)
        self.optimizers = [keras.optimizers.Adam(2e-4, beta_1=0.5) for _ in self.pair]
        for optimizer, network in zip(self.optimizers, self.pair, strict=True):
            optimizer.build(network.trainable_variables)

    def compiled(self, topology: str, batch_size_global: int) -> Any:
        """The program compiled for all devices of a topology."""
        described = topologies.get_topology_desc(topology_name=topology, platform="tpu")
        mesh = Mesh(np.array(described.devices), ("batch",))
        everywhere = NamedSharding(mesh, PartitionSpec())
        shared = NamedSharding(mesh, PartitionSpec("batch"))

        def of(variables: Weights) -> Weights:
            return [
                jax.ShapeDtypeStruct(variable.shape, variable.value.dtype, sharding=everywhere)
                for variable in variables
            ]

        state = [
            [
                of(network.trainable_variables),
                of(network.non_trainable_variables),
                of(optimizer.variables),
            ]
            for network, optimizer in zip(self.pair, self.optimizers, strict=True)
        ]
        side = self._options.tile
        images = [
            jax.ShapeDtypeStruct(
                (batch_size_global, side, side, channels), jnp.uint8, sharding=shared
            )
            for channels in CHANNELS
        ]
        return jax.jit(self.step, donate_argnums=0).lower(state, *images).compile()

    def step(self, state: State, source: Any, target: Any) -> tuple[State, Any]:
        """Both networks; each follows its own loss."""
        source, target = (values.astype(jnp.float32) / 127.5 - 1.0 for values in (source, target))
        stored = [of_network for _, of_network, _ in state]

        def losses_of(*weights: Weights) -> tuple[Any, list[Weights]]:
            losses, moved = self._losses(list(weights), stored, source, target)
            return jnp.stack(losses), moved

        losses, way_back, moved = jax.vjp(
            losses_of, *(weights for weights, _, _ in state), has_aux=True
        )
        updated = []
        for place, (weights, _, slots) in enumerate(state):
            by_weight = way_back(jax.nn.one_hot(place, len(state)))[place]
            weights, slots = self.optimizers[place].stateless_apply(slots, by_weight, weights)
            updated.append([weights, moved[place], slots])
        return updated, losses

    def _losses(
        self, weights: list[Weights], stored: list[Weights], source: Any, target: Any
    ) -> tuple[list[Any], list[Weights]]:
        """The losses of G and D, and the values that batch norm and dropout store."""
        generator, discriminator = self.pair
        outputs, of_g = generator.stateless_call(
            weights[GENERATOR], stored[GENERATOR], source, training=True
        )
        of_d = stored[DISCRIMINATOR]
        fake, of_d = discriminator.stateless_call(
            weights[DISCRIMINATOR], of_d, [source, outputs], training=True
        )
        real, of_d = discriminator.stateless_call(
            weights[DISCRIMINATOR], of_d, [source, target], training=True
        )
        bce = keras.losses.BinaryCrossentropy(from_logits=True)
        distance = keras.losses.MeanAbsoluteError()(target, outputs)
        for_g = bce(jnp.ones_like(fake), fake) + 100.0 * distance
        for_d = 0.5 * (bce(jnp.ones_like(real), real) + bce(jnp.zeros_like(fake), fake))
        return [for_g, for_d], [of_g, of_d]
