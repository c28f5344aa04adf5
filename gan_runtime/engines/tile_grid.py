"""The grid of an image's tiles: cutting an image, sharing the tiles among cores, and merging them.
NumPy only.

    TileGrid(image=(80, 192), tile=(64, 64))     6 tiles: rows 0 and 16, columns 0, 64 and 128

The tiles cover the image exactly. Where they do not fit evenly, the last ones move inward and
overlap by more than `overlap`; none extends over the edge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Sides = tuple[int, int]  # along height and width, in pixels
Weights = NDArray[np.float32]
Blend = Literal["none", "hann"]
BLENDS: tuple[Blend, ...] = ("none", "hann")


@dataclass(frozen=True)
class TileGrid:
    """`image`, `tile`: sides in pixels; `overlap`: least overlap of neighbors in pixels.

    Raises:
        ValueError: the tile is larger than the image, or the overlap is not below its sides.
    """

    image: Sides
    tile: Sides
    overlap: int = 0

    def __post_init__(self) -> None:
        if min(self.tile) < 1 or any(map(int.__gt__, self.tile, self.image)):
            raise ValueError(
                f"a tile of {_words(self.tile)} pixels does not fit into {_words(self.image)}: use"
                " a smaller tile."
            )
        if not 0 <= self.overlap < min(self.tile):
            raise ValueError(
                f"overlap is {self.overlap}, but allowed is 0 to {min(self.tile) - 1}: one below"
                " the side of a tile."
            )

    @property
    def rows(self) -> tuple[int, ...]:
        """The first pixel row of each row of tiles."""
        return tile_starts(self.image[0], self.tile[0], self.overlap)

    @property
    def columns(self) -> tuple[int, ...]:
        """The first pixel column of each column of tiles."""
        return tile_starts(self.image[1], self.tile[1], self.overlap)

    @property
    def positions(self) -> tuple[Sides, ...]:
        """First row and column of every tile, in rows from the top left."""
        return tuple((row, column) for row in self.rows for column in self.columns)

    def __len__(self) -> int:
        return len(self.rows) * len(self.columns)

    def at(self, position: Sides) -> tuple[slice, slice]:
        """The slices of a tile's pixels."""
        (row, column), (height, width) = position, self.tile
        return slice(row, row + height), slice(column, column + width)


def tile_starts(length: int, tile: int, overlap: int) -> tuple[int, ...]:
    """The first pixel of each tile along one axis: every tile - overlap pixels; the last tile ends
    with the image.
    """
    last = length - tile
    return (*range(0, last, tile - overlap), last)


def split_tiles(image: NDArray[Any], grid: TileGrid) -> NDArray[Any]:
    """(height, width, channels) → (tiles, *tile, channels), in the order of `positions`."""
    return np.stack([image[grid.at(position)] for position in grid.positions])


def _words(sides: Sides) -> str:
    return f"{sides[0]} × {sides[1]}"


# ----------------------------------------------------------------------
# Tiles of each core. All cores get equally many, so one program serves all.
#
# Map-reduce of an image (R. Lehmann, P. Schaarschmidt, W. Karl, PARS-Mitteilungen 2024): divide,
# group, map over the cores, merge.


def tiles_per_core(tiles: int, cores: int) -> int:
    """Tiles of each core: tiles / cores, rounded up."""
    return -(-tiles // cores)


def group_tiles(tiles: NDArray[Any], cores: int) -> NDArray[Any]:
    """(tiles, …) → (cores · share, …): core k has the tiles from k · share on.

    The last tile pads the last share; the outcome of the padding is not used.
    """
    missing = cores * tiles_per_core(len(tiles), cores) - len(tiles)
    return np.concatenate([tiles, np.repeat(tiles[-1:], missing, axis=0)])


def ungroup_tiles(groups: NDArray[Any], tiles: int) -> NDArray[Any]:
    """(cores · share, …) → (tiles, …)."""
    return groups[:tiles]


# ----------------------------------------------------------------------
# The image from its tiles: each pixel is the weighted mean of the tiles that contain it.
#
# p(x) = Σ_t w(x - x_t) p_t(x - x_t) / Σ_t w(x - x_t)


def blend_weights(tile: Sides, blend: Blend) -> Weights:
    """(height, width) of one tile: all 1, or Hann's window along both axes, which is small toward
    the border.

    w(i) = sin²(π (i + ½) / n) for i = 0 … n - 1: never 0, so that every pixel has a weight. For n =
    4: 0.146, 0.854, 0.854, 0.146.
    """
    if blend == "none":
        return np.ones(tile, np.float32)
    along = (np.sin(np.pi * (np.arange(side) + 0.5) / side) ** 2 for side in tile)
    return np.multiply.outer(*along).astype(np.float32)


class TileMerge:
    """Merges the tiles of one grid. The sum of the weights is computed only once."""

    def __init__(self, grid: TileGrid, blend: Blend = "none") -> None:
        self._grid = grid
        self._weights = blend_weights(grid.tile, blend)[..., np.newaxis]  # (*tile, 1)
        self._sum = np.zeros((*grid.image, 1), np.float32)
        for position in grid.positions:
            self._sum[grid.at(position)] += self._weights

    def __call__(self, tiles: NDArray[Any]) -> NDArray[np.float32]:
        """(tiles, *tile, channels) → (height, width, channels). Exact where one tile of weight 1
        is.
        """
        image = np.zeros((*self._grid.image, tiles.shape[-1]), np.float32)
        for position, tile in zip(self._grid.positions, tiles, strict=True):
            image[self._grid.at(position)] += self._weights * tile
        return image / self._sum


# ---- visibility of the borders of tiles in an image ----------------------------------------------


def tile_borders(starts: tuple[int, ...], tile: int, length: int) -> tuple[int, ...]:
    """The pixels after a border along one axis: where a tile begins, or the previous tile has
    ended.
    """
    ends = {start + tile for start in starts}
    return tuple(sorted((set(starts) | ends) - {0, length}))


def seam_ratio(images: NDArray[Any], grid: TileGrid) -> NDArray[np.float64]:
    """(frames, height, width, channels) → (frames,): mean |difference| of neighbors across a tile's
    border, over that of all other neighbors. 1: no visible seam. NaN without borders, or in an even
    image.
    """
    wide = images.astype(np.float64)
    at_border: list[NDArray[np.float64]] = []
    elsewhere: list[NDArray[np.float64]] = []
    for axis, starts in ((1, grid.rows), (2, grid.columns)):
        behind = tile_borders(starts, grid.tile[axis - 1], grid.image[axis - 1])
        # change[k] is between pixels k and k + 1.
        change = np.moveaxis(np.abs(np.diff(wide, axis=axis)), axis, 1)
        is_border = np.isin(np.arange(change.shape[1]) + 1, behind)
        at_border.append(change[:, is_border].reshape(len(wide), -1))
        elsewhere.append(change[:, ~is_border].reshape(len(wide), -1))
    across, inside = (np.concatenate(parts, axis=1) for parts in (at_border, elsewhere))
    if not across.size or not inside.size:
        return np.full(len(wide), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = across.mean(axis=1) / inside.mean(axis=1)
    return np.where(np.isfinite(ratio), ratio, np.nan)
