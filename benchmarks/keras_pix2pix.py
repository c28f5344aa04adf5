"""The peer: Pix2Pix as a user would write it in plain Keras, a Model whose `train_step` updates
both networks from one forward pass.

Keras' layers, losses and optimizers; two tapes, as in TensorFlow's tutorial of Pix2Pix. The
mathematics is that of domains/flows/workload.py: a test compares the losses on equal weights and
tiles. It uses none of the project's kernels, noise or exchange. As a side of the row `pix2pix` it
trains on random tiles, which stay in memory.

python -m benchmarks.keras_pix2pix --precision mixed_bfloat16 --batch 16 --steps 20
                                                                      prints one JSON line
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import tensorflow as tf

from benchmarks.keras_pix2pix_networks import networks
from benchmarks.step_timer import arguments, serve_or_print
from gan_runtime.domains.flows.options import Pix2pixOptions

LEARNING_RATE, BETA_1 = 2e-4, 0.5
L1_WEIGHT, D_WEIGHT = 100.0, 0.5
CHANNELS = (4, 3)  # of a flow with its obstacle, and of the next frame
Rows = dict[str, tf.Tensor]


class KerasPix2pix(keras.Model):  # type: ignore[misc]
    """Trains on rows of `source` and `target` tiles, (B, tile, tile, channels) in [-1, 1]."""

    def __init__(self, generator: Any, discriminator: Any) -> None:
        super().__init__()
        self.generator, self.discriminator = generator, discriminator
        self.cross_entropy = keras.losses.BinaryCrossentropy(from_logits=True)
        self.l1 = keras.losses.MeanAbsoluteError()

    def compile(
        self, generator_optimizer: Any, discriminator_optimizer: Any, **options: Any
    ) -> None:
        """Sets an optimizer for each network."""
        super().compile(**options)
        self.optimizers = (generator_optimizer, discriminator_optimizer)
        for optimizer, network in zip(
            self.optimizers, (self.generator, self.discriminator), strict=True
        ):
            optimizer.build(network.trainable_variables)

    def train_step(self, rows: Rows) -> dict[str, tf.Tensor]:
        """Updates both networks from one forward pass, each by its own loss; returns the losses."""
        source, target = rows["source"], rows["target"]
        with tf.GradientTape() as generator_tape, tf.GradientTape() as discriminator_tape:
            outputs = self.generator(source, training=True)
            fake = self.discriminator([source, outputs], training=True)
            real = self.discriminator([source, target], training=True)
            losses = {
                "loss_generator": (
                    self.cross_entropy(tf.ones_like(fake), fake)
                    + L1_WEIGHT * self.l1(target, outputs)
                ),
                "loss_discriminator": (
                    D_WEIGHT
                    * (
                        self.cross_entropy(tf.ones_like(real), real)
                        + self.cross_entropy(tf.zeros_like(fake), fake)
                    )
                ),
            }
        pairs = ((generator_tape, self.generator), (discriminator_tape, self.discriminator))
        for (tape, network), optimizer, loss in zip(
            pairs, self.optimizers, losses.values(), strict=True
        ):
            optimizer.apply(
                tape.gradient(loss, network.trainable_variables), network.trainable_variables
            )
        return losses


def adam() -> Any:
    """Adam with the authors' settings."""
    return keras.optimizers.Adam(LEARNING_RATE, beta_1=BETA_1)


def make_step(precision: str, batch: int) -> Callable[[], float]:
    """A call that trains one step on `batch` tiles, waits until it is done, and returns the
    generator's loss.
    """
    keras.config.set_dtype_policy(precision)
    options = Pix2pixOptions()
    model = KerasPix2pix(*networks(options, CHANNELS))
    model.compile(adam(), adam())
    rows = {
        name: tf.random.uniform([batch, options.tile, options.tile, channels], -1.0, 1.0)
        for name, channels in zip(("source", "target"), CHANNELS, strict=True)
    }
    compiled = tf.function(model.train_step)
    return lambda: float(compiled(rows)["loss_generator"])


if __name__ == "__main__":
    settings = arguments("Times a plain Keras Pix2Pix.").parse_args()
    serve_or_print(settings, make_step(settings.precision, settings.batch))
