"""The peer of the shower step: CERN's 3DGAN as a user would write it in plain Keras on JAX, for the
eight cores of a TPU.

Layers, losses and the four updates of the authors (recardoso/ISC_HPC_3DGAN, AngleArch3dGAN.py and
GPU_Version2.py), each with Keras' own layers: up-sampling, zero padding, convolution.
`stateless_call`, `stateless_apply` of RMSprop(1e-3), the batch shared with `NamedSharding`: the
rest is left to the compiler. Dropout as in keras_on_jax.py. A step runs three programs, two of them
twice (cycles_side.PARTS), as a loop of `train_on_batch` does: an update reads the weights that the
one before it has written, so one program of all four would do the same work, and takes the compiler
twice the time and memory. Loads JAX; the environment of gan_runtime/tpu/check.py must be set
before.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import keras
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from keras import layers

from benchmarks.keras_on_jax import HardwareDropout
from gan_runtime.domains.showers.networks import deposit, energies, measured_angle
from gan_runtime.workloads.losses import bce, mean_absolute_error, mean_percentage_error

GRID = (51, 51, 25)
LATENT = 256
CONDITIONS = 2  # energy and angle, in front of the noise
NORM = 1e-6
FLIPPED = 0.05
WEIGHTS = {"real": 3.0, "energy": 0.1, "angle": 25.0, "deposit": 0.1}
GENERATOR, DISCRIMINATOR = 0, 1
Weights = list[Any]
State = list[list[Weights]]  # of G and D: weights, other variables, the optimizer's
Rows = dict[str, Any]


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
    """Showers → [logit, energy / 100 GeV], (B, 1) each; angle and deposit are measured
    without weights.
    """
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
    """The programs of a step and the shapes of their arguments."""

    def __init__(self, precision: str) -> None:
        keras.config.set_dtype_policy(precision)
        self._pair = (generator(), discriminator())
        self._optimizers = [keras.optimizers.RMSprop(1e-3) for _ in self._pair]
        for optimizer, network in zip(self._optimizers, self._pair, strict=True):
            optimizer.build(network.trainable_variables)

    def compiled(self, part: str, topology: str, batch_size_global: int) -> Any:
        """One of the programs, for all devices of a topology."""
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
            for network, optimizer in zip(self._pair, self._optimizers, strict=True)
        ]
        rows = {
            name: jax.ShapeDtypeStruct((batch_size_global, *shape), jnp.float32, sharding=shared)
            for name, shape in {
                "showers": (*GRID, 1),
                "energy": (),
                "angle": (),
                "deposit": (),
            }.items()
        }
        number = jax.ShapeDtypeStruct((), jnp.int32, sharding=everywhere)
        program = getattr(self, part)
        return jax.jit(program, donate_argnums=0).lower(state, rows, number).compile()

    def judge(self, state: State, rows: Rows, number: Any) -> tuple[State, Any]:
        """Update of D on `rows`, real or generated; an even `number`: they are real."""
        (weights, stored, slots), key = state[DISCRIMINATOR], _key(number)
        flips = jax.random.bernoulli(key, FLIPPED, (rows["energy"].shape[0], 1)).astype(jnp.float32)
        targets = jnp.abs(1.0 - number % 2 - flips)

        def loss_of(network_weights: Weights) -> tuple[Any, Weights]:
            (logits, energy), moved = self._judged(network_weights, stored, rows["showers"])
            error = mean_percentage_error(energy[:, 0], rows["energy"])
            return WEIGHTS["real"] * bce(logits, targets) + WEIGHTS["energy"] * error, moved

        (loss, moved), by_weight = jax.value_and_grad(loss_of, has_aux=True)(weights)
        return [
            state[GENERATOR],
            self._updated(DISCRIMINATOR, by_weight, weights, moved, slots),
        ], loss

    def generate(self, state: State, rows: Rows, number: Any) -> tuple[State, Any]:
        """Showers for D, without an update."""
        weights, stored, _ = state[GENERATOR]
        return state, self._generated(weights, stored, rows, _key(number), training=False)[0]

    def make(self, state: State, rows: Rows, number: Any) -> tuple[State, Any]:
        """Update of G on new noise.

        D judges in training mode, which moves the statistics of its batch norm.
        """
        (weights, stored, slots), (of_judge, stored_of_judge, slots_of_judge) = state

        def loss_of(network_weights: Weights) -> tuple[Any, tuple[Weights, Weights]]:
            fakes, moved = self._generated(
                network_weights, stored, rows, _key(number), training=True
            )
            (logits, energy), judge_stored = self._judged(of_judge, stored_of_judge, fakes)
            cells = energies(fakes)
            loss = (
                WEIGHTS["real"] * bce(logits, 1.0)
                + WEIGHTS["energy"] * mean_percentage_error(energy[:, 0], rows["energy"])
                + WEIGHTS["angle"] * mean_absolute_error(measured_angle(cells), rows["angle"])
                + WEIGHTS["deposit"] * mean_percentage_error(deposit(cells), rows["deposit"])
            )
            return loss, (moved, judge_stored)

        (loss, (moved, judge_stored)), by_weight = jax.value_and_grad(loss_of, has_aux=True)(
            weights
        )
        updated = self._updated(GENERATOR, by_weight, weights, moved, slots)
        return [updated, [of_judge, judge_stored, slots_of_judge]], loss

    def _generated(
        self, weights: Weights, stored: Weights, rows: Rows, key: Any, training: bool
    ) -> tuple[Any, Weights]:
        conditions = jnp.stack([rows["energy"], rows["angle"]], axis=1)
        noise = jax.random.normal(key, (conditions.shape[0], LATENT - CONDITIONS))
        latents = jnp.concatenate([conditions, noise], axis=1)
        return self._pair[GENERATOR].stateless_call(weights, stored, latents, training=training)  # type: ignore[no-any-return]

    def _judged(self, weights: Weights, stored: Weights, showers: Any) -> tuple[Any, Weights]:
        return self._pair[DISCRIMINATOR].stateless_call(weights, stored, showers, training=True)  # type: ignore[no-any-return]

    def _updated(
        self, which: int, by_weight: Weights, weights: Weights, stored: Weights, slots: Weights
    ) -> list[Weights]:
        weights, slots = self._optimizers[which].stateless_apply(slots, by_weight, weights)
        return [weights, stored, slots]


def _key(number: Any) -> Any:
    """A key of the device's generator."""
    return jax.random.fold_in(jax.random.key(1, impl="rbg"), number)
