"""The peer of the 3DGAN epoch: CERN's networks in plain Keras on JAX, for the eight cores of a TPU.

Layers, losses and the four updates of the authors (recardoso/ISC_HPC_3DGAN, AngleArch3dGAN.py and
GPU_Version2.py), with Keras' layers: up-sampling, zero padding, convolution.
`stateless_call`, `stateless_apply` of RMSprop(1e-3), the batch sharded with `NamedSharding`; the
compiler does the rest. Dropout as in keras_on_jax.py. A step runs three programs, two of them twice
(cycles_side.PARTS), as a loop of `train_on_batch` does. One program would do the same work, since
each update reads the weights of the previous one, but takes twice the time and memory to compile.
Loads JAX; the environment of gan_runtime/tpu/check.py must be set first.
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
LATENT_SIZE = 256
CONDITIONS = 2  # energy and angle, before the noise
EPSILON = 1e-6
LABEL_FLIP_RATE = 0.05
LOSS_WEIGHTS = {"real": 3.0, "energy": 0.1, "angle": 25.0, "deposit": 0.1}
GENERATOR, DISCRIMINATOR = 0, 1
Weights = list[Any]
State = list[list[Weights]]  # of G and D: trainable, non-trainable, optimizer variables
Rows = dict[str, Any]


def generator() -> keras.Model:
    """(B, 256) → showers (B, 51, 51, 25, 1)."""
    latents = keras.Input((LATENT_SIZE,))
    values = layers.Reshape((9, 9, 8, 8))(layers.Dense(9 * 9 * 8 * 8)(latents))
    values = layers.UpSampling3D(6)(values)
    values = layers.Conv3D(8, (6, 6, 8), activation="relu")(values)
    values = layers.BatchNormalization(epsilon=EPSILON)(values)
    for kernel, zeros in (*[((4, 4, 6), (2, 2, 1))] * 3, ((3, 3, 5), (1, 1, 0))):
        values = layers.ZeroPadding3D(zeros)(values)
        values = layers.Conv3D(6, kernel, activation="relu")(values)
        values = layers.BatchNormalization(epsilon=EPSILON)(values)
    values = layers.Conv3D(6, 3, activation="relu")(layers.ZeroPadding3D((1, 1, 0))(values))
    return keras.Model(latents, layers.Conv3D(1, 2, activation="relu")(values))


def discriminator() -> keras.Model:
    """Showers → [logit, energy in 100 GeV], (B, 1) each. Angle and deposit need no network."""
    showers = keras.Input((*GRID, 1))
    values = layers.LeakyReLU()(layers.Conv3D(16, (5, 6, 6), padding="same")(showers))
    values = HardwareDropout(0.2)(values)
    for zeros in ((0, 0, 1), (0, 0, 1), (0, 0, 0)):
        values = layers.ZeroPadding3D(zeros)(values) if any(zeros) else values
        values = layers.LeakyReLU()(layers.Conv3D(8, (5, 6, 6))(values))
        values = HardwareDropout(0.2)(layers.BatchNormalization(epsilon=EPSILON)(values))
    features = layers.Flatten()(layers.AveragePooling3D(2)(values))
    return keras.Model(showers, [layers.Dense(1, dtype="float32")(features) for _ in range(2)])


class ShowerPeer:
    """The programs of a training step of 3DGAN, and their compilation."""

    def __init__(self, precision: str) -> None:
        keras.config.set_dtype_policy(precision)
        self._pair = (generator(), discriminator())
        self._optimizers = [keras.optimizers.RMSprop(1e-3) for _ in self._pair]
        for optimizer, network in zip(self._optimizers, self._pair, strict=True):
            optimizer.build(network.trainable_variables)

    def compiled(self, part: str, topology: str, batch_size_global: int) -> Any:
        """A program (a method), compiled for all devices of a topology."""
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
            for network, optimizer in zip(self._pair, self._optimizers, strict=True)
        ]
        rows = {
            name: jax.ShapeDtypeStruct((batch_size_global, *shape), jnp.float32, sharding=sharded)
            for name, shape in {
                "showers": (*GRID, 1),
                "energy": (),
                "angle": (),
                "deposit": (),
            }.items()
        }
        number = jax.ShapeDtypeStruct((), jnp.int32, sharding=replicated)
        program = getattr(self, part)
        return jax.jit(program, donate_argnums=0).lower(state, rows, number).compile()

    def update_discriminator(self, state: State, rows: Rows, number: Any) -> tuple[State, Any]:
        """Updates D on `rows`, which are simulated for an even `number`, else generated."""
        (weights, non_trainable, slots), key = state[DISCRIMINATOR], _key(number)
        flips = jax.random.bernoulli(key, LABEL_FLIP_RATE, (rows["energy"].shape[0], 1)).astype(
            jnp.float32
        )
        targets = jnp.abs(1.0 - number % 2 - flips)

        def loss_of(network_weights: Weights) -> tuple[Any, Weights]:
            (logits, energy), new_non_trainable = self._discriminate(
                network_weights, non_trainable, rows["showers"]
            )
            error = mean_percentage_error(energy[:, 0], rows["energy"])
            loss = LOSS_WEIGHTS["real"] * bce(logits, targets) + LOSS_WEIGHTS["energy"] * error
            return loss, new_non_trainable

        (loss, new_non_trainable), gradient = jax.value_and_grad(loss_of, has_aux=True)(weights)
        return [
            state[GENERATOR],
            self._apply(DISCRIMINATOR, gradient, weights, new_non_trainable, slots),
        ], loss

    def generate(self, state: State, rows: Rows, number: Any) -> tuple[State, Any]:
        """Generates showers for D, without an update."""
        weights, non_trainable, _ = state[GENERATOR]
        return state, self._generate(weights, non_trainable, rows, _key(number), training=False)[0]

    def update_generator(self, state: State, rows: Rows, number: Any) -> tuple[State, Any]:
        """Updates G on new noise. D runs in training mode, which updates its batch-norm
        statistics.
        """
        (weights, non_trainable, slots), (weights_d, non_trainable_d, slots_d) = state

        def loss_of(network_weights: Weights) -> tuple[Any, tuple[Weights, Weights]]:
            fakes, new_non_trainable = self._generate(
                network_weights, non_trainable, rows, _key(number), training=True
            )
            (logits, energy), new_non_trainable_d = self._discriminate(
                weights_d, non_trainable_d, fakes
            )
            cells = energies(fakes)
            loss = (
                LOSS_WEIGHTS["real"] * bce(logits, 1.0)
                + LOSS_WEIGHTS["energy"] * mean_percentage_error(energy[:, 0], rows["energy"])
                + LOSS_WEIGHTS["angle"] * mean_absolute_error(measured_angle(cells), rows["angle"])
                + LOSS_WEIGHTS["deposit"] * mean_percentage_error(deposit(cells), rows["deposit"])
            )
            return loss, (new_non_trainable, new_non_trainable_d)

        (loss, (new_non_trainable, new_non_trainable_d)), gradient = jax.value_and_grad(
            loss_of, has_aux=True
        )(weights)
        updated = self._apply(GENERATOR, gradient, weights, new_non_trainable, slots)
        return [updated, [weights_d, new_non_trainable_d, slots_d]], loss

    def _generate(
        self, weights: Weights, non_trainable: Weights, rows: Rows, key: Any, training: bool
    ) -> tuple[Any, Weights]:
        conditions = jnp.stack([rows["energy"], rows["angle"]], axis=1)
        noise = jax.random.normal(key, (conditions.shape[0], LATENT_SIZE - CONDITIONS))
        latents = jnp.concatenate([conditions, noise], axis=1)
        return self._pair[GENERATOR].stateless_call(
            weights, non_trainable, latents, training=training
        )  # type: ignore[no-any-return]

    def _discriminate(
        self, weights: Weights, non_trainable: Weights, showers: Any
    ) -> tuple[Any, Weights]:
        return self._pair[DISCRIMINATOR].stateless_call(
            weights, non_trainable, showers, training=True
        )  # type: ignore[no-any-return]

    def _apply(
        self,
        index: int,
        gradient: Weights,
        weights: Weights,
        non_trainable: Weights,
        slots: Weights,
    ) -> list[Weights]:
        weights, slots = self._optimizers[index].stateless_apply(slots, gradient, weights)
        return [weights, non_trainable, slots]


def _key(number: Any) -> Any:
    """A key of the device's random number generator."""
    return jax.random.fold_in(jax.random.key(1, impl="rbg"), number)
