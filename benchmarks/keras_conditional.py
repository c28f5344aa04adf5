"""The peer of the row `conditional`: a conditional DCGAN of 64 × 64 RGB images in plain Keras.

The networks of the workload `dcgan` at its default width, layer for layer, in Keras' own layers:
Radford et al. 2016, with the projection discriminator and the conditional batch norm of Miyato and
Koyama 2018, an Embedding for each table of classes. The step is that of keras_loop.py; images and
labels are random and stay in memory.

python -m benchmarks.keras_conditional --precision mixed_bfloat16 --batch 64 --steps 20
                                                                      prints one JSON line
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
from keras import layers, ops

from benchmarks.image_set import CHANNELS, CLASSES, PIXELS
from benchmarks.keras_loop import LATENT_SIZE, step_of
from benchmarks.step_timer import arguments, serve_or_print

WIDTHS = (64, 128, 256, 512)  # of the discriminator's convolutions, outermost first
INNER_PIXELS = PIXELS >> len(WIDTHS)  # of the innermost layers
# By name, so that each layer creates an initializer with its own seed.
INITIALIZER = {"kernel_initializer": {"class_name": "RandomNormal", "config": {"stddev": 0.02}}}


class ConditionalBatchNorm(layers.Layer):  # type: ignore[misc]
    """Batch norm with a scale and an offset for each class.

    Called with [values (B, height, width, channels), labels (B,)].
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = layers.BatchNormalization(momentum=0.9, center=False, scale=False)
        self.gamma = layers.Embedding(CLASSES, channels, embeddings_initializer="ones")
        self.beta = layers.Embedding(CLASSES, channels, embeddings_initializer="zeros")
        self._by_row = (-1, 1, 1, channels)

    def call(self, inputs: list[Any], training: bool | None = None) -> Any:
        """The normalized values, in their shape and dtype."""
        values, labels = inputs
        gamma, beta = (
            ops.reshape(table(labels), self._by_row) for table in (self.gamma, self.beta)
        )
        return self.norm(values, training=training) * gamma + beta


def networks() -> tuple[Any, Any]:
    """Generator [latents (B, 100), labels (B,)] → images (B, 64, 64, 3) in [-1, 1]; discriminator
    [images, labels] → logits (B, 1)."""
    return _generator(), _discriminator()


def _generator() -> Any:
    latents, labels = keras.Input((LATENT_SIZE,)), keras.Input((), dtype="int32")
    values = layers.Dense(INNER_PIXELS * INNER_PIXELS * WIDTHS[-1], use_bias=False, **INITIALIZER)(
        latents
    )
    values = layers.Reshape((INNER_PIXELS, INNER_PIXELS, WIDTHS[-1]))(values)  # 4 × 4 × 512
    values = layers.ReLU()(ConditionalBatchNorm(WIDTHS[-1])([values, labels]))
    for width in reversed(WIDTHS[:-1]):  # 8 × 8 × 256, 16 × 16 × 128, 32 × 32 × 64
        values = layers.Conv2DTranspose(width, 5, 2, padding="same", use_bias=False, **INITIALIZER)(
            values
        )
        values = layers.ReLU()(ConditionalBatchNorm(width)([values, labels]))
    values = layers.Conv2DTranspose(CHANNELS, 5, 2, padding="same", use_bias=False, **INITIALIZER)(
        values
    )
    values = layers.Activation("tanh", dtype="float32")(values)  # 64 × 64 × 3
    return keras.Model([latents, labels], values)


def _discriminator() -> Any:
    images, labels = keras.Input((PIXELS, PIXELS, CHANNELS)), keras.Input((), dtype="int32")
    values = images
    for width in WIDTHS:  # 32 × 32 × 64, 16 × 16 × 128, 8 × 8 × 256, 4 × 4 × 512
        values = layers.LeakyReLU(0.2)(
            layers.Conv2D(width, 5, 2, padding="same", **INITIALIZER)(values)
        )
    logit = layers.Dense(1, dtype="float32", **INITIALIZER)(layers.Flatten()(values))
    summed = ops.sum(ops.cast(values, "float32"), axis=(1, 2))  # (B, 512)
    of_class = layers.Embedding(CLASSES, WIDTHS[-1], dtype="float32")(labels)  # (B, 512)
    match = layers.Dot(axes=1, dtype="float32")([summed, of_class])
    return keras.Model([images, labels], layers.Add(dtype="float32")([logit, match]))


def make_step(precision: str, batch: int) -> Callable[[], float]:
    """A call that trains one step on `batch` images, waits until it is done, and returns the
    generator's loss.
    """
    import tensorflow as tf

    keras.config.set_dtype_policy(precision)
    images = tf.random.uniform([batch, PIXELS, PIXELS, CHANNELS], -1.0, 1.0)
    labels = tf.random.uniform([batch], 0, CLASSES, tf.int32)
    return step_of(*networks(), images, labels)


if __name__ == "__main__":
    options = arguments("Times a plain Keras loop of a conditional DCGAN.").parse_args()
    serve_or_print(options, make_step(options.precision, options.batch))
