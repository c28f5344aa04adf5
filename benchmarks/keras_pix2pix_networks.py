"""U-Net and PatchGAN as a user of plain Keras would write them.

The backend of Keras must be set before the import.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gan_runtime.domains.flows.entry import plan
from gan_runtime.domains.flows.options import DROPPED_BLOCKS, KERNEL, Pix2pixOptions

NORM = {"momentum": 0.9, "epsilon": 1e-5}


def networks(
    options: Pix2pixOptions,
    channels: tuple[int, int],
    dropout: Callable[[float], Any] | None = None,
) -> tuple[Any, Any]:
    """Generator: sources (B, tile, tile, channels) → images in [-1, 1]; discriminator: [sources,
    images] → logits of patches.

    `channels`: of sources and images. `dropout`: creates the layer for a rate; None: Keras' own.
    """
    import keras

    return _generator(options, *channels, dropout or keras.layers.Dropout), _discriminator(
        options, *channels
    )


def _generator(
    options: Pix2pixOptions, source: int, target: int, dropout: Callable[[float], Any]
) -> Any:
    import keras
    from keras import layers

    widths = plan(options).encoder
    pixels = keras.Input((options.tile, options.tile, source))
    skips = [layers.Conv2D(widths[0], KERNEL, 2, padding="same", **_initializer())(pixels)]
    for index, width in enumerate(widths[1:], start=1):
        last = index == len(widths) - 1
        values = layers.LeakyReLU(0.2)(skips[-1])
        values = layers.Conv2D(width, KERNEL, 2, padding="same", use_bias=last, **_initializer())(
            values
        )
        skips.append(values if last else _norm()(values))
    values = skips.pop()
    for block, width in enumerate(reversed(widths[:-1]), start=1):
        up = layers.Conv2DTranspose(
            width, KERNEL, 2, padding="same", use_bias=False, **_initializer()
        )
        values = _norm()(up(layers.ReLU()(values)))
        values = dropout(options.dropout)(values) if block <= DROPPED_BLOCKS else values
        values = layers.Concatenate()([values, skips.pop()])
    image = layers.Conv2DTranspose(target, KERNEL, 2, padding="same", **_initializer())(
        layers.ReLU()(values)
    )
    return keras.Model(pixels, layers.Activation("tanh", dtype="float32")(image))


def _discriminator(options: Pix2pixOptions, source: int, target: int) -> Any:
    import keras
    from keras import layers

    *halved, last = plan(options).patches
    pair = [keras.Input((options.tile, options.tile, channels)) for channels in (source, target)]
    values = layers.Concatenate()(pair)
    for index, width in enumerate(halved):
        values = layers.Conv2D(
            width, KERNEL, 2, padding="same", use_bias=index == 0, **_initializer()
        )(values)
        values = layers.LeakyReLU(0.2)(_norm()(values) if index else values)
    values = layers.Conv2D(last, KERNEL, use_bias=False, **_initializer())(
        layers.ZeroPadding2D()(values)
    )
    values = layers.ZeroPadding2D()(layers.LeakyReLU(0.2)(_norm()(values)))
    return keras.Model(pair, layers.Conv2D(1, KERNEL, dtype="float32", **_initializer())(values))


def _norm() -> Any:
    import keras

    return keras.layers.BatchNormalization(
        **NORM, gamma_initializer=keras.initializers.RandomNormal(1.0, 0.02)
    )


def _initializer() -> dict[str, Any]:
    import keras

    return {"kernel_initializer": keras.initializers.RandomNormal(stddev=0.02)}
