"""The peer: the DCGAN loop of Table 1 as a user would write it in plain Keras.

One device, one tf.function, two tapes over one forward pass, Adam(1e-4). The images are random and
stay in memory: no input pipeline, no journal, no probes. The loop waits for every step, as a loop
that prints its loss does.

python -m benchmarks.keras_loop --precision mixed_bfloat16 --batch 256 --steps 20
                                                                      prints one JSON line
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from benchmarks.keras_networks import networks
from benchmarks.step_timer import arguments, serve_or_print

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["KERAS_BACKEND"] = "tensorflow"

LATENT_SIZE = 100
LEARNING_RATE = 1e-4


def make_step(precision: str, batch: int) -> Callable[[], float]:
    """A call that trains one step on `batch` images, waits until it is done, and returns the
    generator's loss.
    """
    import keras
    import tensorflow as tf

    keras.config.set_dtype_policy(precision)
    return step_of(*networks(), tf.random.uniform([batch, 28, 28, 1], -1.0, 1.0))


def step_of(
    generator: Any, discriminator: Any, images: Any, labels: Any = None
) -> Callable[[], float]:
    """The same for two networks and a batch of images (B, …). With labels (B,), both networks take
    [values, labels].
    """
    import keras
    import tensorflow as tf

    weights = [network.trainable_variables for network in (generator, discriminator)]
    optimizers = [keras.optimizers.Adam(LEARNING_RATE), keras.optimizers.Adam(LEARNING_RATE)]
    for optimizer, variables in zip(optimizers, weights, strict=True):
        optimizer.build(variables)  # a tf.function cannot create variables
    bce = keras.losses.BinaryCrossentropy(from_logits=True)

    def conditioned(values: Any) -> Any:
        return values if labels is None else [values, labels]

    def train_step() -> Any:
        with tf.GradientTape() as generator_tape, tf.GradientTape() as discriminator_tape:
            latents = tf.random.normal([images.shape[0], LATENT_SIZE])
            fake_images = generator(conditioned(latents), training=True)
            real, fake = (
                discriminator(conditioned(image), training=True) for image in (images, fake_images)
            )
            losses = [
                bce(tf.ones_like(fake), fake),
                bce(tf.ones_like(real), real) + bce(tf.zeros_like(fake), fake),
            ]
        for tape, loss, variables, optimizer in zip(
            (generator_tape, discriminator_tape), losses, weights, optimizers, strict=True
        ):
            optimizer.apply(tape.gradient(loss, variables), variables)
        return losses[0]

    compiled = tf.function(train_step)
    return lambda: float(compiled())


if __name__ == "__main__":
    options = arguments("Times a plain Keras DCGAN loop.").parse_args()
    serve_or_print(options, make_step(options.precision, options.batch))
