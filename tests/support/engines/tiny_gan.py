"""A GAN on images of 8 × 8 with every kind of layer of the real ones; its step traces and compiles
quickly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import keras
from keras import layers, ops

from gan_runtime.base.fields import Fields
from gan_runtime.catalog.pairs import PairOptions
from gan_runtime.workloads import step_context
from gan_runtime.workloads.contract import Batch, Forward, Networks, Noise, Phase, Program, Tensor
from gan_runtime.workloads.layers import (
    BatchNorm,
    Convolution,
    ReplicaDropout,
    SpectralNorm,
    TransposedConvolution,
)
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


class Fading(keras.layers.Layer):
    """Counts its training passes, and shrinks its values each time: gradients depend on the initial
    count.
    """

    def build(self, _: Any) -> None:
        self.passes = self.add_weight(name="passes", shape=(), initializer="zeros", trainable=False)

    def call(self, inputs: Any, training: bool = False) -> Any:
        if training:
            self.passes.assign(self.passes + 1.0)
        return inputs / (1.0 + 0.05 * self.passes)


def spectral_networks() -> dict[str, keras.Model]:
    """The same generator, and a discriminator that stores a number per filter in every training
    pass.
    """
    discriminator = keras.Sequential(
        [
            keras.Input(IMAGE_SHAPE),
            SpectralNorm(
                Convolution(8, 5, 2, padding="same", use_bias=False, name="kernel"), name="conv"
            ),
            layers.LeakyReLU(0.2, name="leaky"),
            layers.Flatten(name="flatten"),
            SpectralNorm(layers.Dense(4, use_bias=False, name="kernel"), name="dense"),
            Fading(name="fading"),
            layers.Dense(1, dtype="float32", name="logit"),
        ],
        name="discriminator",
    )
    return {**networks(), "discriminator": discriminator}


SPECTRAL_GAN = UnconditionalPair(LATENT_SIZE, spectral_networks)


class FadeIn(keras.layers.Layer):
    """Scales its values from 0 at the start of the training to 1 at its end."""

    def call(self, inputs: Any) -> Any:
        return inputs * ops.cast(step_context.progress().share, inputs.dtype)


class Scheduled(UnconditionalPair):
    """Reports and shows the progress of the training in each step."""

    def program(self, options: PairOptions, fields: Fields) -> Program:
        """The program of a pair, with additional numbers."""
        return Program(
            tuple(
                replace(phase, forward=reporting(phase))
                for phase in super().program(options, fields).phases
            )
        )

    def show(
        self, options: PairOptions, networks: Networks, inputs: Batch, noise: Noise
    ) -> Mapping[str, Tensor]:
        """Images, and the completed share of the training for each."""
        outputs = super().show(options, networks, inputs, noise)
        share = step_context.current().progress.share
        return {**outputs, "share": ops.broadcast_to(share, outputs["images"].shape[:1])}


def reporting(phase: Phase) -> Callable[[Networks, Batch, Noise], Forward]:
    """The forward pass of a phase, with the step number and the completed share of the training."""

    def forward(networks: Networks, batch: Batch, noise: Noise) -> Forward:
        passed, progress = phase.forward(networks, batch, noise), step_context.current().progress
        scalars = {"step_number": ops.cast(progress.step, "float32"), "share_done": progress.share}
        return Forward(passed.losses, {**passed.scalars, **scalars})

    return forward


def fading_networks() -> dict[str, keras.Model]:
    """A discriminator whose second path fades in."""
    pictures = keras.Input(IMAGE_SHAPE)
    values = layers.Flatten(name="flatten")(pictures)
    fading = FadeIn(name="fade")(layers.Dense(1, dtype="float32", name="fading")(values))
    logit = layers.Dense(1, dtype="float32", name="logit")(values) + fading
    return {**networks(), "discriminator": keras.Model(pictures, logit, name="discriminator")}


SCHEDULED_GAN = Scheduled(LATENT_SIZE, fading_networks, each_image_alone=True)


def with_discriminator(layer: Callable[[], Any]) -> UnconditionalPair:
    """The same generator, and a discriminator with this layer before its logit."""

    def make_networks() -> dict[str, keras.Model]:
        last = layers.Dense(1, dtype="float32", name="logit")
        discriminator = keras.Sequential(
            [keras.Input(IMAGE_SHAPE), layers.Flatten(), layer(), last], name="discriminator"
        )
        return {**networks(), "discriminator": discriminator}

    return UnconditionalPair(LATENT_SIZE, make_networks)


# Workloads that engines refuse, each with a part of the error message.
REFUSED: dict[str, tuple[UnconditionalPair, str]] = {
    "dropout": (with_discriminator(lambda: layers.Dropout(0.5)), "use ReplicaDropout"),
    "noise": (with_discriminator(lambda: layers.GaussianNoise(0.1)), "or the phase's noise"),
    "assigning": (
        with_discriminator(lambda: layers.SpectralNormalization(layers.Dense(4))),
        "as SpectralNorm of",
    ),
}
