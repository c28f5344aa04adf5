"""The networks of Pix2Pix, a U-Net and a PatchGAN, and their training tiles.

U-Net: halves a tile down to one pixel and doubles it again, with a skip connection at each size.
Convolutions are 4 × 4 with stride 2 and one ring of zeros, so sizes are halved and doubled exactly.
Encoder: LeakyReLU(0.2), convolution, batch norm, but no activation before the first one, and no
norm after the first and the last. Decoder: ReLU, transposed convolution, batch norm, dropout in the
three innermost blocks; tanh at the end. Skip connections are joined before the ReLU. Weights are
initialized as N(0, 0.02), gamma as N(1, 0.02).

PatchGAN: scores each patch of an image together with the same patch of its source. 4 × 4
convolutions with one ring of zeros: with stride 2 three times, then stride 1, then to one logit.
LeakyReLU(0.2) after all but the last; batch norm after all but the first and the last. Each logit
reads 70 × 70 pixels; smaller tiles have fewer halvings, and patches of 34 or 16 pixels.

Source: Isola et al. 2017, arXiv:1611.07004, sections 3.2.2 and 6.1; phillipi/pix2pix, models.lua.
"""

from __future__ import annotations

from typing import Any

import keras
from keras import layers, ops

from gan_runtime.base.fields import SOURCE, TARGET, Fields
from gan_runtime.domains.flows.entry import plan
from gan_runtime.domains.flows.options import DROPPED_BLOCKS, KERNEL, Flip, Pix2pixOptions
from gan_runtime.workloads.contract import Tensor
from gan_runtime.workloads.layers import (
    BatchNorm,
    Convolution,
    ReplicaDropout,
    TransposedConvolution,
)

LEAK = 0.2  # slope of LeakyReLU below 0
SPREAD = 0.02  # standard deviation of new weights, and of gammas around 1
EPSILON = 1e-5  # Torch's, of batch norm


def generator(options: Pix2pixOptions, fields: Fields) -> keras.Model:
    """Sources (B, height, width, channels) → images of the target's channels, float32 in [-1, 1].

    Of any size that is a multiple of the tile along both axes. Shapes below: tile 256, full size.
    """
    channels = plan(options).encoder
    source = keras.Input((None, None, fields[SOURCE].shape[-1]), name="source")
    skips = [_halved(source, channels, 0, options)]  # 128 × 128 × 64
    for place in range(1, len(channels)):  # 64 × 64 × 128 … 2 × 2 × 512, 1 × 1 × 512
        values = layers.LeakyReLU(LEAK, name=f"leaky_{place}")(skips[-1])
        skips.append(_halved(values, channels, place, options))
    values = skips.pop()
    for place in range(len(channels) - 1, 0, -1):  # 2 × 2 × 512 … 128 × 128 × 64, doubled by joins
        block = len(channels) - place
        values = _doubled(values, channels[place - 1], place, options)
        if block <= DROPPED_BLOCKS:
            values = ReplicaDropout(options.dropout, name=f"dropout_{block}")(values)
        values = layers.Concatenate(name=f"join_{place}")([values, skips.pop()])
    values = layers.ReLU(name="relu_0")(values)
    image = _up(fields[TARGET].shape[-1], 0, use_bias=True)(values)  # 256 × 256 × 3
    return keras.Model(
        source, layers.Activation("tanh", dtype="float32", name="tanh")(image), name="generator"
    )


def _halved(
    values: Tensor, channels: tuple[int, ...], place: int, options: Pix2pixOptions
) -> Tensor:
    normed = place not in (0, len(channels) - 1)
    values = Convolution(
        channels[place],
        KERNEL,
        2,
        padding="same",
        use_bias=not normed,
        name=f"down_{place}",
        kernel_initializer=new_weights(),
    )(values)
    return norm(f"norm_down_{place}", options)(values) if normed else values


def _doubled(values: Tensor, channels: int, place: int, options: Pix2pixOptions) -> Tensor:
    values = _up(channels, place)(layers.ReLU(name=f"relu_{place}")(values))
    return norm(f"norm_up_{place}", options)(values)


def _up(channels: int, place: int, use_bias: bool = False) -> keras.layers.Layer:
    """`use_bias`: without a norm after it, which would cancel it."""
    return TransposedConvolution(
        channels,
        KERNEL,
        2,
        padding="same",
        use_bias=use_bias,
        name=f"up_{place}",
        kernel_initializer=new_weights(),
    )


def norm(name: str, options: Pix2pixOptions) -> keras.layers.Layer:
    """Batch norm of both networks."""
    return BatchNorm(
        momentum=options.norm_momentum,
        epsilon=EPSILON,
        gamma_initializer=keras.initializers.RandomNormal(1.0, SPREAD),
        name=name,
    )


def new_weights() -> keras.initializers.Initializer:
    """A new initializer for each layer, since an initializer draws its seed on creation."""
    return keras.initializers.RandomNormal(stddev=SPREAD)


# ---- patch gan -----------------------------------------------------------------------------------

RING = ((1, 1), (1, 1))  # of zeros


def discriminator(options: Pix2pixOptions, fields: Fields) -> keras.Model:
    """[sources, images] (B, height, width, channels) → logits of their patches, float32 (B, rows,
    columns, 1).

    Shapes below: tile 256, full size.
    """
    channels = plan(options).patches
    pair = [
        keras.Input((None, None, fields[name].shape[-1]), name=name) for name in (SOURCE, TARGET)
    ]
    values = layers.Concatenate(name="pair")(pair)  # 256 × 256 × 6
    # 128 × 128 × 64, 64 × 64 × 128, 32 × 32 × 256, 31 × 31 × 512
    for place, width in enumerate(channels):
        convolution = _stride_1 if place == len(channels) - 1 else _stride_2
        values = convolution(width, f"conv_{place}", use_bias=place == 0)(values)
        if place:
            values = norm(f"norm_{place}", options)(values)
        values = layers.LeakyReLU(LEAK, name=f"leaky_{place}")(values)
    logits = _stride_1(1, "logits", use_bias=True, dtype="float32")(values)  # 30 × 30 × 1
    return keras.Model(pair, logits, name="discriminator")


def _stride_2(channels: int, name: str, **convolution: Any) -> keras.layers.Layer:
    """A convolution with stride 2. For even sizes, "same" padding is one ring of zeros."""
    return Convolution(
        channels,
        KERNEL,
        2,
        padding="same",
        name=name,
        kernel_initializer=new_weights(),
        **convolution,
    )


def _stride_1(channels: int, name: str, **convolution: Any) -> keras.layers.Layer:
    """A convolution with stride 1, which removes one pixel along each axis."""
    return Convolution(
        channels, KERNEL, zeros=RING, name=name, kernel_initializer=new_weights(), **convolution
    )


# ---- training tiles ------------------------------------------------------------------------------
# A tile of each image, cut and flipped on the device. Frames: values (B, height, width, channels),
# float32. Draws: uniform in [0, 1), float32, a row for each row of the batch.

AXES: dict[Flip, int] = {"vertical": 1, "horizontal": 2}  # of a flip


def cut(frames: Tensor, draws: Tensor, tile: int) -> Tensor:
    """Cuts uniformly distributed tiles (B, tile, tile, channels) from frames. `draws`: (B, 2), for
    top and left.

    Frames of 80 × 192 and tile 64: tops 0 to 16, lefts 0 to 128, so pixel (i, j) of row b's tile is
    pixel (b · 80 + top + i) · 192 + left + j of all frames, one after another.
    """
    rows, height, width, channels = frames.shape
    if (height, width) == (tile, tile):
        return frames
    places_along = ops.convert_to_tensor([height - tile + 1, width - tile + 1], "float32")
    # A draw of 1 less one last bit, times the number of places, can be rounded up to it.
    corner = ops.minimum(ops.floor(ops.convert_to_tensor(draws) * places_along), places_along - 1.0)
    corner = ops.cast(corner, "int32")  # (B, 2)
    along = ops.arange(tile, dtype="int32")
    down = ops.arange(rows, dtype="int32")[:, None] * height + corner[:, :1] + along  # (B, tile)
    across = corner[:, 1:] + along
    places = down[:, :, None] * width + across[:, None, :]  # (B, tile, tile)
    return ops.take(ops.reshape(frames, (rows * height * width, channels)), places, axis=0)


def flipped(frames: Tensor, draws: Tensor, flip: Flip, odd_channels: tuple[int, ...]) -> Tensor:
    """Flips half of the frames; upside down, `odd_channels` change their sign. `draws`: (B,)."""
    if flip == "none":
        return frames
    over = ops.flip(frames, axis=AXES[flip])
    if flip == "vertical":
        over = over * ops.convert_to_tensor(
            [-1.0 if channel in odd_channels else 1.0 for channel in range(frames.shape[-1])],
            frames.dtype,
        )
    return ops.where(draws[:, None, None, None] < 0.5, over, frames)
