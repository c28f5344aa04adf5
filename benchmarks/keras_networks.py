"""The networks of Table 1 as a user of plain Keras would write them.

The backend of Keras must be set before the import.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def networks(dropout: Callable[[float], Any] | None = None) -> tuple[Any, Any]:
    """Generator (B, 100) → (B, 28, 28, 1) in [-1, 1]; discriminator (B, 28, 28, 1) → logits (B, 1).

    `dropout`: creates the layer for a rate; None: Keras' own.
    """
    import keras
    from keras import layers

    drop = dropout or layers.Dropout

    generator = keras.Sequential(
        [
            keras.Input((100,)),
            layers.Dense(7 * 7 * 256, use_bias=False),
            layers.BatchNormalization(),
            layers.LeakyReLU(0.2),
            layers.Reshape((7, 7, 256)),
            layers.Conv2DTranspose(128, 5, padding="same", use_bias=False),  # 7 × 7 × 128
            layers.BatchNormalization(),
            layers.LeakyReLU(0.2),
            layers.Conv2DTranspose(64, 5, strides=2, padding="same", use_bias=False),  # 14×14×64
            layers.BatchNormalization(),
            layers.LeakyReLU(0.2),
            layers.Conv2DTranspose(1, 5, strides=2, padding="same", use_bias=False),  # 28 × 28 × 1
            layers.Activation("tanh", dtype="float32"),
        ]
    )
    discriminator = keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            layers.Conv2D(64, 5, strides=2, padding="same"),  # 14 × 14 × 64
            layers.LeakyReLU(0.2),
            drop(0.3),
            layers.Conv2D(128, 5, strides=2, padding="same"),  # 7 × 7 × 128
            layers.LeakyReLU(0.2),
            drop(0.3),
            layers.Flatten(),
            layers.Dense(1, dtype="float32"),
        ]
    )
    return generator, discriminator
