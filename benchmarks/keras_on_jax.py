"""The peer of the cycle table: Table 1's step as a user would write it in plain Keras on JAX, for
the eight cores of a TPU.

`stateless_call`, two gradients of one forward pass, `stateless_apply` of Adam(1e-4), ten steps in
`lax.scan`, the batch sharded with `NamedSharding`; the compiler does the rest. Dropout uses the
device's random number generator, as users do who have profiled a TPU. Loads JAX; the environment of
gan_runtime/tpu/check.py must be set first.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import keras
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from benchmarks.keras_networks import networks

STEPS_PER_CALL = 10
BYTE_LEVELS = 256
Weights = list[Any]


class HardwareDropout(keras.layers.Layer):  # type: ignore[misc]
    """Dropout with bytes from the device's generator, since JAX's own runs in software."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self._kept_levels = round((1.0 - rate) * BYTE_LEVELS)
        self._seeds = keras.random.SeedGenerator(1)

    def call(self, inputs: Any, training: bool = False) -> Any:
        """Scaled or zeroed inputs, in their shape and dtype."""
        if not training:
            return inputs
        seed = self._seeds.next()
        key = jax.random.wrap_key_data(jnp.concatenate([seed, seed]).astype(jnp.uint32), impl="rbg")
        keep = jax.random.bits(key, inputs.shape, "uint8") < self._kept_levels
        return jnp.where(
            keep,
            inputs * jnp.asarray(BYTE_LEVELS / self._kept_levels, inputs.dtype),
            jnp.zeros([], inputs.dtype),
        )


class Peer:
    """Compiles STEPS_PER_CALL training steps of Table 1."""

    def __init__(self, precision: str) -> None:
        keras.config.set_dtype_policy(precision)
        self._pair = networks(HardwareDropout)
        self._optimizers = [keras.optimizers.Adam(1e-4) for _ in self._pair]
        for optimizer, network in zip(self._optimizers, self._pair, strict=True):
            optimizer.build(network.trainable_variables)

    def compiled(self, topology: str, batch_size_global: int) -> Any:
        """The program for all devices of a topology."""
        description = topologies.get_topology_desc(topology_name=topology, platform="tpu")
        mesh = Mesh(np.array(description.devices), ("batch",))
        replicated, sharded = (
            NamedSharding(mesh, PartitionSpec()),
            NamedSharding(mesh, PartitionSpec(None, "batch")),
        )

        def shapes(variables: Weights) -> Weights:
            return [
                jax.ShapeDtypeStruct(variable.shape, variable.value.dtype, sharding=replicated)
                for variable in variables
            ]

        state = [
            [shapes(network.trainable_variables) for network in self._pair],
            [shapes(network.non_trainable_variables) for network in self._pair],
            [shapes(optimizer.variables) for optimizer in self._optimizers],
            jax.ShapeDtypeStruct((), jnp.int32, sharding=replicated),
        ]
        images = jax.ShapeDtypeStruct(
            (STEPS_PER_CALL, batch_size_global, 28, 28, 1), jnp.uint8, sharding=sharded
        )
        return (
            jax.jit(lambda state, images: jax.lax.scan(self._step, state, images), donate_argnums=0)
            .lower(state, images)
            .compile()
        )

    def _step(self, state: Any, images: Any) -> tuple[Any, Any]:
        weights, non_trainable, slots, step = state
        latents = jax.random.normal(
            jax.random.fold_in(jax.random.key(1), step), (images.shape[0], 100)
        )
        real = images.astype(jnp.float32) / 127.5 - 1.0
        gradients = []
        for index in (0, 1):

            def loss(network_weights: Weights, index: int = index) -> tuple[Any, Any]:
                pair = [network_weights if other == index else weights[other] for other in (0, 1)]
                losses, new_non_trainable = self._losses(pair, non_trainable, real, latents)
                return losses[index], (losses, new_non_trainable)

            gradient, (losses, new_non_trainable) = jax.grad(loss, has_aux=True)(weights[index])
            gradients.append(gradient)
        updated = [
            optimizer.stateless_apply(slots[index], gradients[index], weights[index])
            for index, optimizer in enumerate(self._optimizers)
        ]
        return [
            [network_weights for network_weights, _ in updated],
            new_non_trainable,
            [network_slots for _, network_slots in updated],
            step + 1,
        ], jnp.stack(losses)

    def _losses(
        self, weights: list[Weights], non_trainable: list[Weights], real: Any, latents: Any
    ) -> tuple[list[Any], list[Weights]]:
        generator, discriminator = self._pair
        fake_images, new_non_trainable_g = generator.stateless_call(
            weights[0], non_trainable[0], latents, training=True
        )
        logits_real, new_non_trainable = discriminator.stateless_call(
            weights[1], non_trainable[1], real, training=True
        )
        logits_fake, new_non_trainable = discriminator.stateless_call(
            weights[1], new_non_trainable, fake_images, training=True
        )
        bce = keras.losses.BinaryCrossentropy(from_logits=True)
        generator_loss = bce(jnp.ones_like(logits_fake), logits_fake)
        discriminator_loss = bce(jnp.ones_like(logits_real), logits_real) + bce(
            jnp.zeros_like(logits_fake), logits_fake
        )
        return [generator_loss, discriminator_loss], [new_non_trainable_g, new_non_trainable]
