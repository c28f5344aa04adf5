"""Tiles that become a picture again: each pixel is the weighted mean of the tiles that hold it.

p(x) = Σ_t w(x - x_t) p_t(x - x_t) / Σ_t w(x - x_t)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime.engines.tiling.division import Division, Sides
from gan_runtime.engines.tiling.ways import Blend

Weights = NDArray[np.float32]


def weights(tile: Sides, blend: Blend) -> Weights:
    """(height, width) of one tile: all 1, or Hann's window along both axes, which lets a tile count less toward its border.

    w(i) = sin²(π (i + ½) / n) for i = 0 … n - 1: never 0, so that every pixel has a weight. For n = 4: 0.146, 0.854, 0.854, 0.146.
    """
    if blend == "none":
        return np.ones(tile, np.float32)
    along = (np.sin(np.pi * (np.arange(side) + 0.5) / side) ** 2 for side in tile)
    return np.multiply.outer(*along).astype(np.float32)


class Merging:
    """The way back from the tiles of one division; the sum of the weights is known before the tiles are."""

    def __init__(self, division: Division, blend: Blend = "none") -> None:
        self._division = division
        self._weights = weights(division.tile, blend)[..., np.newaxis]  # (*tile, 1)
        self._sum = np.zeros((*division.picture, 1), np.float32)
        for position in division.positions:
            self._sum[division.at(position)] += self._weights

    def __call__(self, tiles: NDArray[Any]) -> NDArray[np.float32]:
        """(tiles, *tile, channels) → (height, width, channels). Where one tile of weight 1 lies, its very values."""
        picture = np.zeros((*self._division.picture, tiles.shape[-1]), np.float32)
        for position, tile in zip(self._division.positions, tiles, strict=True):
            picture[self._division.at(position)] += self._weights * tile
        return picture / self._sum
