"""The peer: 3DGAN as a user would write it in plain Keras, a Model whose `train_step` makes the
four updates.

Keras' layers, losses and optimizers; under a distribution strategy Keras scales the losses and sums
the gradients. The mathematics is that of domains/showers/workload.py: a test compares the losses on
equal weights, batch and noise. It uses none of the project's kernels, noise or exchange.

As a side of the row `showers`, `train_step` repeats on random showers of the small grid, which stay
in memory.

python -m benchmarks.keras_showers --precision mixed_bfloat16 --batch 32 --steps 20
                                                                      prints one JSON line
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import tensorflow as tf
from keras import layers

from benchmarks.step_timer import arguments, serve_or_print
from gan_runtime.domains.showers.layer_tables import POOL, ConvolutionPlan, LayerPlan, plan

CELL_POWER, LABEL_FLIP_RATE = 0.85, 0.05
REAL_WEIGHT, ENERGY_WEIGHT, ANGLE_WEIGHT, DEPOSIT_WEIGHT = 3.0, 0.1, 25.0, 0.1  # of the loss terms
NORM = {"epsilon": 1e-6}
SIZE, GRID, LEARNING_RATE = "tiny", (17, 17, 25), 1e-3
Rows = dict[str, tf.Tensor]


def networks(
    plan: LayerPlan, grid: tuple[int, ...], latent_size: int = 256, dropout: float = 0.2
) -> tuple[Any, Any]:
    """Generator and discriminator, layer by layer as in docs/3dgan.md. No axis of the grid is
    periodic.
    """
    return _generator(plan, latent_size), _discriminator(plan, grid, dropout)


def _generator(plan: LayerPlan, latent_size: int) -> keras.Model:
    latents = keras.Input((latent_size,))
    values = layers.Dense(math.prod(plan.cells) * plan.cell_channels)(latents)
    values = layers.Reshape((*plan.cells, plan.cell_channels))(values)
    first = plan.generator[0]
    values = layers.ZeroPadding3D(first.around)(values)
    values = layers.UpSampling3D(plan.factors)(values)
    values = layers.Conv3D(
        first.filters, first.kernel, activation="relu", kernel_initializer="he_uniform"
    )(values)
    values = layers.BatchNormalization(**NORM)(layers.Cropping3D(first.cut)(values))
    for index, layer in enumerate(plan.generator[1:-1], start=1):
        values = _convolution(layer, activation="relu", kernel_initializer="he_uniform")(
            layers.ZeroPadding3D(layer.around)(values)
        )
        if index < len(plan.generator) - 2:
            values = layers.BatchNormalization(**NORM)(values)
    last = plan.generator[-1]
    values = _convolution(last, kernel_initializer="glorot_normal")(
        layers.ZeroPadding3D(last.around)(values)
    )
    return keras.Model(latents, layers.ReLU(dtype="float32")(values))


def _discriminator(plan: LayerPlan, grid: tuple[int, ...], dropout: float) -> keras.Model:
    showers = keras.Input((*grid, 1))
    values = showers
    for index, layer in enumerate(plan.discriminator):
        values = _convolution(layer)(layers.ZeroPadding3D(layer.around)(values))
        values = layers.LeakyReLU(0.3)(values)
        if index:
            values = layers.BatchNormalization(**NORM)(values)
        values = layers.Dropout(dropout)(values)
    features = layers.Flatten()(layers.AveragePooling3D(POOL)(values))
    return keras.Model(showers, [layers.Dense(1, dtype="float32")(features) for _ in range(2)])


def _convolution(layer: ConvolutionPlan, **convolution: Any) -> keras.layers.Layer:
    return layers.Conv3D(layer.filters, layer.kernel, **convolution)


class Random:
    """TensorFlow's random numbers; a test replaces them."""

    def normal(self, rows: int, size: int) -> tf.Tensor:
        """(rows, size), standard normal."""
        return tf.random.normal([rows, size])

    def uniform(self, rows: int) -> tf.Tensor:
        """(rows, 1), uniform in [0, 1)."""
        return tf.random.uniform([rows, 1])


class Keras3dgan(keras.Model):  # type: ignore[misc]
    """Trains on rows: showers (B, X, Y, Z, 1); energy in 100 GeV, angle in rad, deposit in 20 MeV,
    (B,) each.
    """

    def __init__(self, generator: Any, discriminator: Any, random: Random | None = None) -> None:
        super().__init__()
        self.generator, self.discriminator, self.random = (
            generator,
            discriminator,
            random or Random(),
        )
        self.cross_entropy = keras.losses.BinaryCrossentropy(from_logits=True)
        self.percentage_error, self.absolute_error = (
            keras.losses.MeanAbsolutePercentageError(),
            keras.losses.MeanAbsoluteError(),
        )

    def compile(
        self, generator_optimizer: Any, discriminator_optimizer: Any, **options: Any
    ) -> None:
        """Sets an optimizer for each network."""
        super().compile(**options)
        self.optimizers = {"g": generator_optimizer, "d": discriminator_optimizer}
        generator_optimizer.build(self.generator.trainable_variables)
        discriminator_optimizer.build(self.discriminator.trainable_variables)

    def train_step(self, rows: Rows) -> dict[str, tf.Tensor]:
        """Updates D on simulated showers, D on generated showers, then G twice. Returns the four
        losses.
        """
        count = rows["energy"].shape[0]
        conditions = tf.stack([rows["energy"], rows["angle"]], axis=1)
        losses = {
            "loss_discriminator_real": self._update_discriminator(
                rows["showers"], rows, 1.0 - self._flips(count)
            )
        }
        fake = self.generator(self._latents(conditions), training=False)
        losses["loss_discriminator_fake"] = self._update_discriminator(
            fake, rows, self._flips(count)
        )
        for number in (1, 2):
            losses[f"loss_generator_{number}"] = self._update_generator(
                self._latents(conditions), rows
            )
        return losses

    def _update_discriminator(
        self, showers: tf.Tensor, rows: Rows, targets: tf.Tensor
    ) -> tf.Tensor:
        with tf.GradientTape() as tape:
            logits, energy = self.discriminator(showers, training=True)
            loss = REAL_WEIGHT * self.cross_entropy(
                targets, logits
            ) + ENERGY_WEIGHT * self.percentage_error(rows["energy"][:, None], energy)
        self._apply_gradients("d", self.discriminator, tape, loss)
        return loss

    def _update_generator(self, latents: tf.Tensor, rows: Rows) -> tf.Tensor:
        with tf.GradientTape() as tape:
            showers = self.generator(latents, training=True)
            logits, energy = self.discriminator(showers, training=True)
            cells = tf.maximum(showers[..., 0], 0.0) ** (1.0 / CELL_POWER)
            loss = (
                REAL_WEIGHT * self.cross_entropy(tf.ones_like(logits), logits)
                + ENERGY_WEIGHT * self.percentage_error(rows["energy"][:, None], energy)
                + ANGLE_WEIGHT
                * self.absolute_error(rows["angle"][:, None], measured_angle(cells)[:, None])
                + DEPOSIT_WEIGHT
                * self.percentage_error(
                    rows["deposit"][:, None], tf.reduce_sum(cells, [1, 2, 3])[:, None]
                )
            )
        self._apply_gradients("g", self.generator, tape, loss)
        return loss

    def _apply_gradients(
        self, key: str, network: Any, tape: tf.GradientTape, loss: tf.Tensor
    ) -> None:
        gradients = tape.gradient(loss, network.trainable_variables)
        self.optimizers[key].apply(gradients, network.trainable_variables)

    def _latents(self, conditions: tf.Tensor) -> tf.Tensor:
        count, size = conditions.shape[0], self.generator.input_shape[-1] - conditions.shape[1]
        return tf.concat([conditions, self.random.normal(count, size)], axis=1)

    def _flips(self, count: int) -> tf.Tensor:
        return tf.cast(self.random.uniform(count) < LABEL_FLIP_RATE, tf.float32)


def measured_angle(cells: tf.Tensor) -> tf.Tensor:
    """Angles in rad, (B,), from cells (B, X, Y, Z), as in domains/showers/networks.py."""
    layer_sums, total = tf.reduce_sum(cells, [1, 2]), tf.reduce_sum(cells, [1, 2, 3])
    x, y, z = (tf.range(size, dtype=tf.float32) + 0.5 for size in cells.shape[1:])
    x_of_layers = _ratio_or_zero(tf.einsum("bxyz,x->bz", cells, x), layer_sums)
    y_of_layers = _ratio_or_zero(tf.einsum("bxyz,y->bz", cells, y), layer_sums)
    center = [
        _ratio_or_zero(tf.einsum(f"bxyz,{axis}->b", cells, positions), total)[:, None]
        for axis, positions in zip("xyz", (x, y, z), strict=True)
    ]
    distance = tf.sqrt(tf.maximum((x_of_layers - center[0]) ** 2 + (z - center[2]) ** 2, 1e-7))
    slope = tf.where(z < center[2], -1.0, 1.0) * (y_of_layers - center[1]) / distance
    weight = tf.where(layer_sums > 1e-6, z, 0.0)
    angle = _ratio_or_zero(
        tf.reduce_sum(weight * (math.pi / 2 - tf.atan(slope)), 1), tf.reduce_sum(weight, 1)
    )
    return tf.where(total > 1e-6, angle, 100.0)


def _ratio_or_zero(numerator: tf.Tensor, denominator: tf.Tensor) -> tf.Tensor:
    return tf.where(
        denominator > 1e-6, numerator / tf.where(denominator > 1e-6, denominator, 1.0), 0.0
    )


def make_step(precision: str, batch: int) -> Callable[[], float]:
    """A call that trains one step on `batch` showers, waits until it is done, and returns the
    generator's last loss.
    """
    keras.config.set_dtype_policy(precision)
    model = Keras3dgan(*networks(plan(SIZE, GRID), GRID))
    model.compile(keras.optimizers.RMSprop(LEARNING_RATE), keras.optimizers.RMSprop(LEARNING_RATE))
    rows = {
        "showers": tf.random.uniform([batch, *GRID, 1]),
        "energy": tf.random.uniform([batch], 0.1, 5.0),
        "angle": tf.random.uniform([batch], 1.0, 2.0),
        "deposit": tf.random.uniform([batch], 10.0, 500.0),
    }
    compiled = tf.function(model.train_step)
    return lambda: float(compiled(rows)["loss_generator_2"])


if __name__ == "__main__":
    options = arguments("Times a plain Keras 3DGAN.").parse_args()
    serve_or_print(options, make_step(options.precision, options.batch))
