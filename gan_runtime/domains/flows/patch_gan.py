"""The discriminator of Pix2Pix: a PatchGAN, which judges each patch of an image beside the same patch of its source.

4 × 4 convolutions among one ring of zeros: with stride 2 three times, then without a stride, then to one logit. LeakyReLU(0.2) behind all but
the last; batch norm behind all but the first and the last. Each logit sees 70 × 70 pixels; a tile that is smaller than that has
fewer halvings, and patches of 34 or 16 pixels.
Source: Isola et al. 2017, arXiv:1611.07004, sections 3.2.2 and 6.1.2.
"""

from __future__ import annotations

from typing import Any

import keras
from keras import layers

from gan_runtime.base.fields import SOURCE, TARGET, Fields
from gan_runtime.domains.flows.entry import KERNEL, Pix2pixOptions, plan
from gan_runtime.domains.flows.unet import LEAK, new_weights, norm
from gan_runtime.workloads.layers import Convolution

RING = ((1, 1), (1, 1))  # of zeros


def discriminator(options: Pix2pixOptions, fields: Fields) -> keras.Model:
    """[sources, images] (B, height, width, channels) → logits of their patches, float32 (B, rows, columns, 1).

    Shapes below: tile 256, full size.
    """
    channels = plan(options).patches
    pair = [keras.Input((None, None, fields[name].shape[-1]), name=name) for name in (SOURCE, TARGET)]
    values = layers.Concatenate(name="pair")(pair)  # 256 × 256 × 6
    for place, width in enumerate(channels):  # 128 × 128 × 64, 64 × 64 × 128, 32 × 32 × 256, 31 × 31 × 512
        is_last = place == len(channels) - 1
        values = (_kept if is_last else _halved)(width, f"conv_{place}", use_bias=place == 0)(values)
        if place:
            values = norm(f"norm_{place}", options)(values)
        values = layers.LeakyReLU(LEAK, name=f"leaky_{place}")(values)
    logits = _kept(1, "logits", use_bias=True, dtype="float32")(values)  # 30 × 30 × 1
    return keras.Model(pair, logits, name="discriminator")


def _halved(channels: int, name: str, **convolution: Any) -> keras.layers.Layer:
    """Of an even size "same" is one ring of zeros."""
    return Convolution(
        channels, KERNEL, 2, padding="same", name=name, kernel_initializer=new_weights(), **convolution
    )


def _kept(channels: int, name: str, **convolution: Any) -> keras.layers.Layer:
    """One pixel less along each axis."""
    return Convolution(
        channels, KERNEL, zeros=RING, name=name, kernel_initializer=new_weights(), **convolution
    )
