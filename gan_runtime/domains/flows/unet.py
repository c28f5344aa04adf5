"""The generator of Pix2Pix: a U-Net that halves a tile down to one pixel and doubles it again, with a way across at each size.

Convolutions are 4 × 4 with stride 2 among one ring of zeros, so sizes are halved and doubled exactly. Encoder: LeakyReLU(0.2), convolution,
batch norm, but no activation before the first one, and no norm after the first and the last. Decoder: ReLU, transposed
convolution, batch norm, dropout in the three innermost blocks; tanh at the end. What goes across is joined before the ReLU.
Source: Isola et al. 2017, arXiv:1611.07004, section 6.1; phillipi/pix2pix, models.lua. Weights begin as N(0, 0.02), gamma as N(1, 0.02).
"""

from __future__ import annotations

import keras
from keras import layers

from gan_runtime.base.fields import SOURCE, TARGET, Fields
from gan_runtime.domains.flows.entry import DROPPED_BLOCKS, KERNEL, Pix2pixOptions, plan
from gan_runtime.workloads.contract import Tensor
from gan_runtime.workloads.layers import BatchNorm, Convolution, ReplicaDropout, TransposedConvolution

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
            _halved(layers.LeakyReLU(LEAK, name=f"leaky_{place}")(across[-1]), channels, place, options)
        )
    values = across.pop()
    for place in range(len(channels) - 1, 0, -1):  # 2 × 2 × 512 … 128 × 128 × 64, twice as many joined
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


def _halved(values: Tensor, channels: tuple[int, ...], place: int, options: Pix2pixOptions) -> Tensor:
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
