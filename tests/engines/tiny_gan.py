"""A GAN with every kind of layer that the real ones have, on images of 8 × 8: its step is traced and compiled in a moment."""

from __future__ import annotations

import keras
from keras import layers

from gan_runtime.workloads.layers import BatchNorm, Convolution, ReplicaDropout, TransposedConvolution
from gan_runtime.workloads.pair import UnconditionalPair

IMAGE_SHAPE = (8, 8, 1)
LATENT_SIZE = 6


def networks() -> dict[str, keras.Model]:
    """Generator (B, 6) → (B, 8, 8, 1) in [-1, 1]; discriminator (B, 8, 8, 1) → logits (B, 1)."""
    generator = keras.Sequential(
        [
            keras.Input((LATENT_SIZE,)),
            layers.Dense(4 * 4 * 8, use_bias=False, name="dense"),
            BatchNorm(momentum=0.9, name="norm"),
            layers.LeakyReLU(0.2, name="leaky"),
            layers.Reshape((4, 4, 8), name="reshape"),
            TransposedConvolution(1, 5, 2, padding="same", use_bias=False, name="up"),
            layers.Activation("tanh", dtype="float32", name="tanh"),
        ],
        name="generator",
    )
    discriminator = keras.Sequential(
        [
            keras.Input(IMAGE_SHAPE),
            Convolution(8, 5, 2, padding="same", name="conv"),
            layers.LeakyReLU(0.2, name="leaky"),
            ReplicaDropout(0.3, name="dropout"),
            layers.Flatten(name="flatten"),
            layers.Dense(1, dtype="float32", name="logit"),
        ],
        name="discriminator",
    )
    return {"generator": generator, "discriminator": discriminator}


TINY_GAN = UnconditionalPair(LATENT_SIZE, networks, each_image_alone=True)
