"""DCGAN on 28 × 28 grayscale images: Table 1 of the paper.

Images: float32 (B, 28, 28, 1) in [-1, 1]; latents: float32 (B, 100), standard normal.
Source: Ravikumar and Sriraman 2023, Table 1 and section 4.1. Two misprints of the table are read as
in the standard DCGAN (docs/dcgan.md). Only the generator has batch norm.
"""

from __future__ import annotations

import keras
from keras import layers

from gan_runtime.workloads.layers import (
    BatchNorm,
    Convolution,
    ReplicaDropout,
    TransposedConvolution,
)
from gan_runtime.workloads.pair import UnconditionalPair

LATENT_SIZE = 100
KERNEL = 5
LEAK = 0.2  # slope of LeakyReLU for negative inputs, as in Radford et al. 2016
DROPOUT = 0.3
# Of the stored batch-norm statistics, as in Radford et al.'s code; 0.99 would lag by 100 steps.
MOMENTUM = 0.9


def networks() -> dict[str, keras.Model]:
    """Generator (B, 100) → (B, 28, 28, 1) in [-1, 1]; discriminator (B, 28, 28, 1) → logits
    (B, 1).
    """
    return {"generator": _generator(), "discriminator": _discriminator()}


def _generator() -> keras.Model:
    return keras.Sequential(
        [
            keras.Input((LATENT_SIZE,)),
            layers.Dense(7 * 7 * 256, use_bias=False, name="dense"),  # batch norm adds the bias
            BatchNorm(momentum=MOMENTUM, name="norm_1"),
            layers.LeakyReLU(LEAK, name="leaky_1"),
            layers.Reshape((7, 7, 256), name="reshape"),
            # 7 × 7 × 128
            TransposedConvolution(128, KERNEL, padding="same", use_bias=False, name="up_1"),
            BatchNorm(momentum=MOMENTUM, name="norm_2"),
            layers.LeakyReLU(LEAK, name="leaky_2"),
            # 14 × 14 × 64
            TransposedConvolution(64, KERNEL, 2, padding="same", use_bias=False, name="up_2"),
            BatchNorm(momentum=MOMENTUM, name="norm_3"),
            layers.LeakyReLU(LEAK, name="leaky_3"),
            # 28 × 28 × 1
            TransposedConvolution(1, KERNEL, 2, padding="same", use_bias=False, name="up_3"),
            layers.Activation("tanh", dtype="float32", name="tanh"),
        ],
        name="generator",
    )


def _discriminator() -> keras.Model:
    return keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            Convolution(64, KERNEL, 2, padding="same", name="conv_1"),  # 14 × 14 × 64
            layers.LeakyReLU(LEAK, name="leaky_1"),
            ReplicaDropout(DROPOUT, name="dropout_1"),
            Convolution(128, KERNEL, 2, padding="same", name="conv_2"),  # 7 × 7 × 128
            layers.LeakyReLU(LEAK, name="leaky_2"),
            ReplicaDropout(DROPOUT, name="dropout_2"),
            layers.Flatten(name="flatten"),  # 6272
            layers.Dense(1, dtype="float32", name="logit"),
        ],
        name="discriminator",
    )


WORKLOAD = UnconditionalPair(LATENT_SIZE, networks, each_image_alone=True)
