"""Fully connected GAN on 28 × 28 grayscale images: small, without batch norm and dropout.

Images: float32 (B, 28, 28, 1) in [-1, 1]; latents: float32 (B, 32), standard normal.
Source: Goodfellow et al. 2014, arXiv:1406.2661, section 5, with narrower layers. No image affects
another, so N replicas compute exactly what one replica computes on the whole batch.
"""

from __future__ import annotations

import keras
from keras import layers

from gan_runtime.workloads.pair import UnconditionalPair

LATENT_SIZE = 32
WIDTH = 128
LEAK = 0.2


def networks() -> dict[str, keras.Model]:
    """Generator (B, 32) → (B, 28, 28, 1) in [-1, 1]; discriminator (B, 28, 28, 1) → logits
    (B, 1).
    """
    generator = keras.Sequential(
        [
            keras.Input((LATENT_SIZE,)),
            layers.Dense(WIDTH, name="hidden"),
            layers.LeakyReLU(LEAK, name="leaky"),
            layers.Dense(28 * 28, name="pixels"),
            layers.Reshape((28, 28, 1), name="reshape"),
            layers.Activation("tanh", dtype="float32", name="tanh"),
        ],
        name="generator",
    )
    discriminator = keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            layers.Flatten(name="flatten"),
            layers.Dense(WIDTH, name="hidden"),
            layers.LeakyReLU(LEAK, name="leaky"),
            layers.Dense(1, dtype="float32", name="logit"),
        ],
        name="discriminator",
    )
    return {"generator": generator, "discriminator": discriminator}


WORKLOAD = UnconditionalPair(LATENT_SIZE, networks, each_image_alone=True)
