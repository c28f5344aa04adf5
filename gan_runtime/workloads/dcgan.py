"""DCGAN for square images of 28 to 128 pixels, grayscale or RGB, conditional if the data set has
labels.

Images: float32 (B, side, side, channels) in [-1, 1]; latents: float32 (B, latent_size), standard
normal; labels: int32 (B,).
Source: Radford et al. 2016, arXiv:1511.06434, section 3 and Fig. 1 (networks); Miyato and Koyama
2018, arXiv:1802.05637 (projection discriminator, eq. 5 and Fig. 1d; conditional batch norm in the
generator, after Dumoulin et al. 2017).
"""

from __future__ import annotations

from typing import Any

import keras
from keras import layers, ops

from gan_runtime.base.fields import IMAGES, LABELS, Fields
from gan_runtime.catalog.dcgan import KERNEL, DcganOptions, channels
from gan_runtime.workloads.contract import Tensor
from gan_runtime.workloads.layers import (
    BatchNorm,
    ConditionalBatchNorm,
    Convolution,
    TransposedConvolution,
)
from gan_runtime.workloads.pair import Pair

LEAK = 0.2  # slope of LeakyReLU for negative inputs, as in Radford et al.
MOMENTUM = 0.9  # of the stored batch-norm statistics, as in Radford et al.'s code
SPREAD = 0.02  # standard deviation of new weights: Radford et al., section 4


def networks(options: DcganOptions, fields: Fields) -> dict[str, keras.Model]:
    """Generator: latents (, labels) → images; discriminator: images (, labels) → logits (B, 1)."""
    return {
        "generator": _generator(options, fields),
        "discriminator": _discriminator(options, fields),
    }


def _generator(options: DcganOptions, fields: Fields) -> keras.Model:
    side, _, colors = fields[IMAGES].shape
    widths = channels(options, side)
    start = side >> len(widths)
    latents, labels = keras.Input((options.latent_size,), name="latents"), _labels(fields)

    def activated(values: Tensor, number: int) -> Tensor:
        norm = _norm(fields, f"norm_{number}")
        return layers.ReLU(name=f"relu_{number}")(
            norm(values) if labels is None else norm([values, labels])
        )

    values = layers.Dense(
        start * start * widths[-1], use_bias=False, name="dense", kernel_initializer=_new_weights()
    )(latents)
    # 64 pixels: 4 × 4 × 512
    values = layers.Reshape((start, start, widths[-1]), name="reshape")(values)
    values = activated(values, 1)
    # 8 × 8 × 256, 16 × 16 × 128, 32 × 32 × 64
    for number, width in enumerate(reversed(widths[:-1]), start=1):
        values = activated(_up(width, f"up_{number}")(values), number + 1)
    values = _up(colors, f"up_{len(widths)}")(values)  # 64 × 64 × 3
    images = layers.Activation("tanh", dtype="float32", name="tanh")(values)
    return keras.Model(latents if labels is None else [latents, labels], images, name="generator")


def _discriminator(options: DcganOptions, fields: Fields) -> keras.Model:
    shape = fields[IMAGES].shape
    images, labels = keras.Input(shape, name="pictures"), _labels(fields)
    values = images
    # 64 pixels: 32 × 32 × 64 … 4 × 4 × 512
    for number, width in enumerate(channels(options, shape[0]), start=1):
        has_norm = options.discriminator_norm == "batch" and number > 1
        values = Convolution(
            width,
            KERNEL,
            2,
            padding="same",
            use_bias=not has_norm,
            name=f"conv_{number}",
            kernel_initializer=_new_weights(),
        )(values)
        if has_norm:
            values = BatchNorm(momentum=MOMENTUM, name=f"norm_{number}")(values)
        values = layers.LeakyReLU(LEAK, name=f"leaky_{number}")(values)
    logit = layers.Dense(1, dtype="float32", name="logit", kernel_initializer=_new_weights())(
        layers.Flatten(name="flatten")(values)
    )
    if labels is None:
        return keras.Model(images, logit, name="discriminator")
    match = Projection(len(fields[LABELS].classes), dtype="float32", name="projection")(
        [values, labels]
    )
    return keras.Model(
        [images, labels],
        layers.Add(dtype="float32", name="sum")([logit, match]),
        name="discriminator",
    )


def _up(width: int, name: str) -> keras.layers.Layer:
    return TransposedConvolution(
        width,
        KERNEL,
        2,
        padding="same",
        use_bias=False,
        name=name,
        kernel_initializer=_new_weights(),
    )


def _norm(fields: Fields, name: str) -> keras.layers.Layer:
    if LABELS not in fields:
        return BatchNorm(momentum=MOMENTUM, name=name)
    return ConditionalBatchNorm(len(fields[LABELS].classes), momentum=MOMENTUM, name=name)


def _new_weights() -> keras.initializers.Initializer:
    """A new initializer for each layer: an initializer draws its seed when created, so layers that
    share one would start with equal weights.
    """
    return keras.initializers.RandomNormal(stddev=SPREAD)


def _labels(fields: Fields) -> Any:
    return keras.Input((), dtype="int32", name="labels") if LABELS in fields else None


@keras.saving.register_keras_serializable("gan_runtime")
class Projection(keras.layers.Layer):
    """How well an image's features match its class: ⟨v_y, Σ φ(x)⟩, the first term of D's logit

        f(x, y) = ⟨v_y, Σ φ(x)⟩ + ψ(φ(x))    (Miyato and Koyama 2018, eq. 5)

    where φ(x) are the features of the last convolution, summed over the pixels, v_y is a learned
    vector for each class y, and ψ is the dense layer `logit`. [features (B, height, width,
    channels), labels int (B,)] → (B, 1). At 64 pixels with a width of 64 and 10 classes: φ (B, 4,
    4, 512), summed (B, 512); all v (10, 512), of the labels (B, 512); their products summed (B, 1).
    In float32: in bfloat16 the sum over pixels and channels loses too much.
    """

    def __init__(self, classes: int, **layer: object) -> None:
        super().__init__(**layer)
        self.classes = classes

    def build(self, input_shape: list[tuple[int | None, ...]]) -> None:
        """Creates one vector for each class, as long as the features have channels."""
        shape = (self.classes, input_shape[0][-1])
        self.vectors = self.add_weight(shape=shape, initializer=_new_weights(), name="vectors")

    def call(self, inputs: list[Tensor]) -> Tensor:
        """Float32 (B, 1)."""
        features, labels = inputs
        summed = ops.sum(ops.cast(features, "float32"), axis=(1, 2))  # (B, channels)
        # A product, not a lookup: its gradient is a dense array, which any engine can exchange.
        one_hot = ops.one_hot(labels, self.classes, dtype="float32")
        of_labels = ops.matmul(one_hot, self.vectors)  # (B, channels)
        return ops.sum(summed * of_labels, axis=-1, keepdims=True)

    def compute_output_shape(
        self, input_shape: list[tuple[int | None, ...]]
    ) -> tuple[int | None, int]:
        """(B, 1)."""
        return input_shape[0][0], 1

    def get_config(self) -> dict[str, object]:
        return {**super().get_config(), "classes": self.classes}


class Dcgan(Pair):
    """DCGAN networks whose size and depth follow the options and the data set."""

    def networks(self, options: DcganOptions, fields: Fields) -> dict[str, Any]:
        """The generator and the discriminator, newly initialized."""
        return networks(options, fields)

    def latent_size_of(self, options: DcganOptions) -> int:
        """The option `latent_size`."""
        return options.latent_size

    def judges_each_alone(self, options: DcganOptions) -> bool:
        """True if D has no batch norm."""
        return options.discriminator_norm == "none"


WORKLOAD = Dcgan()
