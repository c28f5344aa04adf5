"""The peer of the shower step: CERN's 3DGAN as a user would write it in plain Keras on JAX, for the eight cores of a TPU.

Layers, losses and the four updates of the authors (recardoso/ISC_HPC_3DGAN, AngleArch3dGAN.py and GPU_Version2.py), each with
Keras' own layers: up-sampling, zero padding, convolution. `stateless_call`, `stateless_apply` of RMSprop(1e-3), steps in `lax.scan`,
the batch shared with `NamedSharding`: the rest is left to the compiler. Dropout as in keras_on_jax.py. Loads JAX; the
environment of gan_runtime/tpu/check.py must stand before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import keras
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from keras import layers

from benchmarks.keras_on_jax import HardwareDropout
from gan_runtime.workloads.losses import bce, mean_absolute_error, mean_percentage_error
from gan_runtime.workloads.shower_heads import deposit, energies, measured_angle

GRID = (51, 51, 25)
LATENT = 256
CONDITIONS = 2  # energy and angle, in front of the noise
NORM = 1e-6
FLIPPED = 0.05
WEIGHTS = {"real": 3.0, "energy": 0.1, "angle": 25.0, "deposit": 0.1}
GENERATOR, DISCRIMINATOR = 0, 1
Weights = list[Any]


def generator() -> keras.Model:
    """(B, 256) → showers (B, 51, 51, 25, 1)."""
    latents = keras.Input((LATENT,))
    values = layers.Reshape((9, 9, 8, 8))(layers.Dense(9 * 9 * 8 * 8)(latents))
    values = layers.UpSampling3D(6)(values)
    values = layers.Conv3D(8, (6, 6, 8), activation="relu")(values)
    values = layers.BatchNormalization(epsilon=NORM)(values)
    for kernel, zeros in (*[((4, 4, 6), (2, 2, 1))] * 3, ((3, 3, 5), (1, 1, 0))):
        values = layers.ZeroPadding3D(zeros)(values)
        values = layers.Conv3D(6, kernel, activation="relu")(values)
        values = layers.BatchNormalization(epsilon=NORM)(values)
    values = layers.Conv3D(6, 3, activation="relu")(layers.ZeroPadding3D((1, 1, 0))(values))
    return keras.Model(latents, layers.Conv3D(1, 2, activation="relu")(values))


def discriminator() -> keras.Model:
    """Showers → [logit, energy / 100 GeV], (B, 1) each; angle and deposit are measured without weights."""
    showers = keras.Input((*GRID, 1))
    values = layers.LeakyReLU()(layers.Conv3D(16, (5, 6, 6), padding="same")(showers))
    values = HardwareDropout(0.2)(values)
    for zeros in ((0, 0, 1), (0, 0, 1), (0, 0, 0)):
        values = layers.ZeroPadding3D(zeros)(values) if any(zeros) else values
        values = layers.LeakyReLU()(layers.Conv3D(8, (5, 6, 6))(values))
        values = HardwareDropout(0.2)(layers.BatchNormalization(epsilon=NORM)(values))
    features = layers.Flatten()(layers.AveragePooling3D(2)(values))
    return keras.Model(showers, [layers.Dense(1, dtype="float32")(features) for _ in range(2)])


class ShowerPeer:
    """The training call and the shapes of its arguments. `steps`: of one call."""

    def __init__(self, precision: str, steps: int) -> None:
        keras.config.set_dtype_policy(precision)
        self._steps = steps
        self._pair = (generator(), discriminator())
        self._optimizers = [keras.optimizers.RMSprop(1e-3) for _ in self._pair]
        for optimizer, network in zip(self._optimizers, self._pair, strict=True):
            optimizer.build(network.trainable_variables)

    def compiled(self, topology: str, batch_size_global: int) -> Any:
        """The program for all devices of a topology."""
        described = topologies.get_topology_desc(topology_name=topology, platform="tpu")
        mesh = Mesh(np.array(described.devices), ("batch",))
        everywhere = NamedSharding(mesh, PartitionSpec())
        shared = NamedSharding(mesh, PartitionSpec(None, "batch"))

        def shapes(variables: Weights) -> Weights:
            return [
                jax.ShapeDtypeStruct(one.shape, one.value.dtype, sharding=everywhere) for one in variables
            ]

        state = [
            [shapes(network.trainable_variables) for network in self._pair],
            [shapes(network.non_trainable_variables) for network in self._pair],
            [shapes(optimizer.variables) for optimizer in self._optimizers],
            jax.ShapeDtypeStruct((), jnp.int32, sharding=everywhere),
        ]
        rows = {
            name: jax.ShapeDtypeStruct((self._steps, batch_size_global, *shape), jnp.float32, sharding=shared)
            for name, shape in {"showers": (*GRID, 1), "energy": (), "angle": (), "deposit": ()}.items()
        }
        whole = jax.jit(lambda state, rows: jax.lax.scan(self._step, state, rows), donate_argnums=0)
        return whole.lower(state, rows).compile()

    def _step(self, state: Any, rows: Any) -> tuple[Any, Any]:
        """D on real showers, D on generated ones, G twice."""
        *_, step = state
        keys = jax.random.split(jax.random.fold_in(jax.random.key(1, impl="rbg"), step), 5)
        fakes = self._generated(state[0], state[1], rows, keys[0], training=False)[0]
        losses = []
        for key, showers, target in ((keys[1], rows["showers"], 1.0), (keys[2], fakes, 0.0)):

            def judged(own: Weights, other: Any, key: Any = key, showers: Any = showers, target: float = target) -> Any:  # fmt: skip
                flips = jax.random.bernoulli(key, FLIPPED, (showers.shape[0], 1))
                (logits, energy), moved = self._judged(own, other, showers)
                targets = jnp.abs(target - flips.astype(jnp.float32))
                error = mean_percentage_error(energy[:, 0], rows["energy"])
                return WEIGHTS["real"] * bce(logits, targets) + WEIGHTS["energy"] * error, {
                    DISCRIMINATOR: moved
                }

            state, loss = self._updated(state, DISCRIMINATOR, judged)
            losses.append(loss)
        for key in keys[3:]:

            def made(own: Weights, other: Any, key: Any = key) -> Any:
                return self._of_generator(own, other, rows, key)

            state, loss = self._updated(state, GENERATOR, made)
            losses.append(loss)
        return [*state[:3], step + 1], jnp.stack(losses)

    def _of_generator(self, own: Weights, other: Any, rows: Any, key: Any) -> Any:
        weights, stored = other
        fakes, moved = self._generated([own, weights[DISCRIMINATOR]], stored, rows, key, training=True)
        (logits, energy), seen = self._judged(weights[DISCRIMINATOR], other, fakes)
        cells = energies(fakes)
        loss = (
            WEIGHTS["real"] * bce(logits, 1.0)
            + WEIGHTS["energy"] * mean_percentage_error(energy[:, 0], rows["energy"])
            + WEIGHTS["angle"] * mean_absolute_error(measured_angle(cells), rows["angle"])
            + WEIGHTS["deposit"] * mean_percentage_error(deposit(cells), rows["deposit"])
        )
        return loss, {GENERATOR: moved, DISCRIMINATOR: seen}

    def _generated(
        self, weights: Any, stored: Any, rows: Any, key: Any, training: bool
    ) -> tuple[Any, Weights]:
        conditions = jnp.stack([rows["energy"], rows["angle"]], axis=1)
        noise = jax.random.normal(key, (conditions.shape[0], LATENT - CONDITIONS))
        latents = jnp.concatenate([conditions, noise], axis=1)
        return self._pair[GENERATOR].stateless_call(  # type: ignore[no-any-return]
            weights[GENERATOR], stored[GENERATOR], latents, training=training
        )

    def _judged(self, own: Weights, other: Any, showers: Any) -> tuple[Any, Weights]:
        return self._pair[DISCRIMINATOR].stateless_call(  # type: ignore[no-any-return]
            own, other[1][DISCRIMINATOR], showers, training=True
        )

    def _updated(
        self, state: Any, which: int, loss_of: Callable[[Weights, Any], tuple[Any, dict[int, Weights]]]
    ) -> tuple[Any, Any]:
        weights, stored, slots, step = state
        (loss, moved), by_weight = jax.value_and_grad(loss_of, has_aux=True)(
            weights[which], (weights, stored)
        )
        own, moments = self._optimizers[which].stateless_apply(slots[which], by_weight, weights[which])
        weights = [own if place == which else one for place, one in enumerate(weights)]
        stored = [moved.get(place, one) for place, one in enumerate(stored)]
        slots = [moments if place == which else one for place, one in enumerate(slots)]
        return [weights, stored, slots, step], loss
