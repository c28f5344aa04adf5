"""The generator of Pix2Pix: a U-Net that halves a tile down to one pixel and doubles it again, with
a way across at each size.

Convolutions are 4 × 4 with stride 2 among one ring of zeros, so sizes are halved and doubled
exactly. Encoder: LeakyReLU(0.2), convolution, batch norm, but no activation before the first one,
and no norm after the first and the last. Decoder: ReLU, transposed convolution, batch norm, dropout
in the three innermost blocks; tanh at the end. What goes across is joined before the ReLU.
Source: Isola et al. 2017, arXiv:1611.07004, section 6.1; phillipi/pix2pix, models.lua. Weights
begin as N(0, 0.02), gamma as N(1, 0.02).
"""

from __future__ import annotations

from typing import Any

import keras
from keras import layers, ops

from gan_runtime.base.fields import SOURCE, TARGET, Fields
from gan_runtime.domains.flows.entry import DROPPED_BLOCKS, KERNEL, Flip, Pix2pixOptions, plan
from gan_runtime.workloads.contract import Tensor
from gan_runtime.workloads.layers import (
    BatchNorm,
    Convolution,
    ReplicaDropout,
    TransposedConvolution,
)

LEAK = 0.2  # slope of LeakyReLU below 0
SPREAD = 0.02  # standard deviation of new weights, and of new gammas around 1
EPSILON = 1e-5  # Torch's, of batch norm


def generator(options: Pix2pixOptions, fields: Fields) -> keras.Model:
    """Sources (B, height, width, channels) → images of the target's channels, float32 in [-1, 1].

    Of any size that is a multiple of the tile along both axes. Shapes below: tile 256, full size.
    """
    channels = plan(options).encoder
    source = keras.Input((None, None, fields[SOURCE].shape[-1]), name="source")
    across = [_halved(source, channels, 0, options)]  # 128 × 128 × 64
    for place in range(1, len(channels)):  # 64 × 64 × 128 … 2 × 2 × 512, 1 × 1 × 512
        across.append(
            _halved(
                layers.LeakyReLU(LEAK, name=f"leaky_{place}")(across[-1]), channels, place, options
            )
        )
    values = across.pop()
    for place in range(
        len(channels) - 1, 0, -1
    ):  # 2 × 2 × 512 … 128 × 128 × 64, twice as many joined
        block = len(channels) - place
        values = _doubled(values, channels[place - 1], place, options)
        if block <= DROPPED_BLOCKS:
            values = ReplicaDropout(options.dropout, name=f"dropout_{block}")(values)
        values = layers.Concatenate(name=f"join_{place}")([values, across.pop()])
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
    """`use_bias`: without a norm behind it, which would take it away again."""
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
    """Batch norm as both networks have it."""
    return BatchNorm(
        momentum=options.norm_momentum,
        epsilon=EPSILON,
        gamma_initializer=keras.initializers.RandomNormal(1.0, SPREAD),
        name=name,
    )


def new_weights() -> keras.initializers.Initializer:
    """One for each layer: an initializer draws its seed when it is made."""
    return keras.initializers.RandomNormal(stddev=SPREAD)


# ---- patch gan -----------------------------------------------------------------------------------
# The discriminator of Pix2Pix: a PatchGAN, which judges each patch of an image beside the same
# patch of its source.
#
# 4 × 4 convolutions among one ring of zeros: with stride 2 three times, then without a stride, then
# to one logit. LeakyReLU(0.2) behind all but the last; batch norm behind all but the first and the
# last. Each logit sees 70 × 70 pixels; a tile that is smaller than that has fewer halvings, and
# patches of 34 or 16 pixels. Source: Isola et al. 2017, arXiv:1611.07004, sections 3.2.2 and 6.1.2.

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
    for place, width in enumerate(
        channels
    ):  # 128 × 128 × 64, 64 × 64 × 128, 32 × 32 × 256, 31 × 31 × 512
        is_last = place == len(channels) - 1
        values = (_kept if is_last else _narrowed)(width, f"conv_{place}", use_bias=place == 0)(
            values
        )
        if place:
            values = norm(f"norm_{place}", options)(values)
        values = layers.LeakyReLU(LEAK, name=f"leaky_{place}")(values)
    logits = _kept(1, "logits", use_bias=True, dtype="float32")(values)  # 30 × 30 × 1
    return keras.Model(pair, logits, name="discriminator")


def _narrowed(channels: int, name: str, **convolution: Any) -> keras.layers.Layer:
    """Of an even size "same" is one ring of zeros."""
    return Convolution(
        channels,
        KERNEL,
        2,
        padding="same",
        name=name,
        kernel_initializer=new_weights(),
        **convolution,
    )


def _kept(channels: int, name: str, **convolution: Any) -> keras.layers.Layer:
    """One pixel less along each axis."""
    return Convolution(
        channels, KERNEL, zeros=RING, name=name, kernel_initializer=new_weights(), **convolution
    )


# ---- training tiles ------------------------------------------------------------------------------
# What the networks of Pix2Pix see of whole images: a tile of each row, cut out and turned over on
# the device.
#
# Frames: values (B, height, width, channels), float32. Draws: even in [0, 1), float32, a row for
# each row of the batch.

AXES: dict[Flip, int] = {"vertical": 1, "horizontal": 2}  # that a flip turns over


def cut(frames: Tensor, draws: Tensor, tile: int) -> Tensor:
    """(B, tile, tile, channels); all places are as likely.

    `draws`: (B, 2), of the top and of the left.

    Frames of 80 × 192 and tile 64: tops 0 to 16, lefts 0 to 128, so pixel (i, j) of row b's tile is
    pixel (b · 80 + top + i) · 192 + left + j of all frames, one after another.
    """
    rows, height, width, channels = frames.shape
    if (height, width) == (tile, tile):
        return frames
    room = ops.convert_to_tensor([height - tile + 1, width - tile + 1], "float32")
    # Below 1 by a last bit, a draw times the room may round up to it.
    corner = ops.minimum(ops.floor(ops.convert_to_tensor(draws) * room), room - 1.0)
    corner = ops.cast(corner, "int32")  # (B, 2)
    along = ops.arange(tile, dtype="int32")
    down = ops.arange(rows, dtype="int32")[:, None] * height + corner[:, :1] + along  # (B, tile)
    across = corner[:, 1:] + along
    places = down[:, :, None] * width + across[:, None, :]  # (B, tile, tile)
    return ops.take(ops.reshape(frames, (rows * height * width, channels)), places, axis=0)


def turned(frames: Tensor, draws: Tensor, flip: Flip, odd_channels: tuple[int, ...]) -> Tensor:
    """Half of the frames turned over.

    `draws`: (B,). Upside down, `odd_channels` change their sign as well.
    """
    if flip == "none":
        return frames
    over = ops.flip(frames, axis=AXES[flip])
    if flip == "vertical":
        over = over * ops.convert_to_tensor(
            [-1.0 if channel in odd_channels else 1.0 for channel in range(frames.shape[-1])],
            frames.dtype,
        )
    return ops.where(draws[:, None, None, None] < 0.5, over, frames)
