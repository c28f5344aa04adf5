"""A GAN with every kind of layer that the real ones have, on images of 8 × 8: its step is traced and compiled in a moment."""

from __future__ import annotations

import keras
from keras import layers

from gan_runtime.workloads.contract import Objective, Phase
from gan_runtime.workloads.layers import BatchNorm, Convolution, ReplicaDropout, TransposedConvolution
from gan_runtime.workloads.pair import pair_phases, pair_preview, pair_scores


class TinyGan:
    """See `contract.Workload`."""

    name = "tiny"
    image_shape = (8, 8, 1)
    latent_size = 6
    scores = staticmethod(pair_scores)
    preview = staticmethod(pair_preview)

    def phases(self, objective: Objective) -> tuple[Phase, ...]:
        """As DCGAN's."""
        return pair_phases(self.latent_size, objective, each_image_alone=True)

    def networks(self) -> dict[str, keras.Model]:
        """Generator (B, 6) → (B, 8, 8, 1) in [-1, 1]; discriminator (B, 8, 8, 1) → logits (B, 1)."""
        generator = keras.Sequential(
            [
                keras.Input((self.latent_size,)),
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
                keras.Input(self.image_shape),
                Convolution(8, 5, 2, padding="same", name="conv"),
                layers.LeakyReLU(0.2, name="leaky"),
                ReplicaDropout(0.3, name="dropout"),
                layers.Flatten(name="flatten"),
                layers.Dense(1, dtype="float32", name="logit"),
            ],
            name="discriminator",
        )
        return {"generator": generator, "discriminator": discriminator}
