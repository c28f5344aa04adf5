"""A small image-to-image network with every layer of a U-Net, down to a single pixel and back."""

from __future__ import annotations

import zlib
from typing import Any

import keras
import numpy as np
from keras import layers

from gan_runtime.engines.tiles import Translator
from gan_runtime.workloads.layers import (
    BatchNorm,
    Convolution,
    ReplicaDropout,
    TransposedConvolution,
)

TILE, CHANNELS_IN, CHANNELS_OUT = 16, 4, 3
NAME = "generator"
WIDTHS = (8, 16, 64, 128)  # wide, so that the last convolution has long sums: 16 · 64


class ToyTranslation:
    """Implements `workloads.contract.Translates`."""

    def networks(self, options: Any, fields: Any) -> dict[str, keras.Model]:  # noqa: ARG002
        """(B, 16 a, 16 b, 4) → (B, 16 a, 16 b, 3) in [-1, 1]."""
        source = values = keras.Input((None, None, CHANNELS_IN))
        skips = []
        for level, width in enumerate(WIDTHS):
            values = Convolution(width, 4, 2, padding="same", name=f"down_{level}")(values)
            values = layers.LeakyReLU(0.2, name=f"leaky_{level}")(
                BatchNorm(name=f"norm_{level}")(values)
            )
            skips.append(values)
        for level, width in reversed([*enumerate(WIDTHS[:-1])]):
            values = TransposedConvolution(width, 4, 2, padding="same", name=f"up_{level}")(values)
            values = ReplicaDropout(0.5, name=f"dropout_{level}")(values)
            values = layers.Concatenate(name=f"skip_{level}")([values, skips[level]])
        values = TransposedConvolution(
            CHANNELS_OUT, 4, 2, padding="same", dtype="float32", name="picture"
        )(values)
        outcome = layers.Activation("tanh", dtype="float32", name="tanh")(values)
        return {NAME: keras.Model(source, outcome, name=NAME)}

    def tile(self, options: Any, fields: Any) -> int:  # noqa: ARG002
        """The side of a tile for four levels."""
        return TILE

    def translate(self, options: Any, networks: Any, source: Any) -> Any:  # noqa: ARG002
        """Runs in inference mode."""
        return networks[NAME](source, training=False)


def translator(precision: str = "float32") -> Translator:
    """A translator whose weights depend only on their names, so both engines have the same."""
    workload = ToyTranslation()
    shapes = {
        variable.path: variable.shape for variable in workload.networks(None, {})[NAME].variables
    }
    arrays = {path: _random_weights(path, shape) for path, shape in shapes.items()}
    return Translator(workload, None, {}, NAME, precision, arrays)


def picture(height: int, width: int) -> np.ndarray:
    """float32 (height, width, 4)."""
    return (
        np.random.default_rng(3).uniform(-1.0, 1.0, (height, width, CHANNELS_IN)).astype(np.float32)
    )


def _random_weights(path: str, shape: tuple[int, ...]) -> np.ndarray:
    random = np.random.default_rng(zlib.crc32(path.encode()))
    if "variance" in path or "gamma" in path:
        return random.uniform(0.5, 1.5, shape).astype(np.float32)
    wide = float(np.prod(shape[:-1])) if len(shape) > 1 else 4.0
    return (random.standard_normal(shape) * (2.0 / wide) ** 0.5).astype(np.float32)
