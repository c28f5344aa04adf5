"""Where the tiles of a picture lie: they cover it exactly, in rows from the top left.

    Division(picture=(80, 192), tile=(64, 64), overlap=0)     6 tiles: rows 0 and 16, columns 0, 64
    and 128

Tiles that do not fit evenly are moved inward, so the last two share more than `overlap`; none hangs
over the edge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Sides = tuple[int, int]  # along height and width, in pixels
Blend = Literal["none", "hann"]
BLENDS: tuple[Blend, ...] = ("none", "hann")


@dataclass(frozen=True)
class Division:
    """`picture`, `tile`: sides in pixels; `overlap`: pixels that neighbors share at least.

    Raises:
        ValueError: a tile that is larger than the picture, or an overlap that is not below the
            tile's sides.
    """

    picture: Sides
    tile: Sides
    overlap: int = 0

    def __post_init__(self) -> None:
        if min(self.tile) < 1 or any(map(int.__gt__, self.tile, self.picture)):
            raise ValueError(
                f"a tile of {_words(self.tile)} pixels does not fit into {_words(self.picture)}."
            )
        if not 0 <= self.overlap < min(self.tile):
            raise ValueError(
                f"overlap is {self.overlap}, but allowed is 0 to {min(self.tile) - 1}: one below"
                " the side of a tile."
            )

    @property
    def rows(self) -> tuple[int, ...]:
        """The first pixel row of each row of tiles."""
        return places(self.picture[0], self.tile[0], self.overlap)

    @property
    def columns(self) -> tuple[int, ...]:
        """The first pixel column of each column of tiles."""
        return places(self.picture[1], self.tile[1], self.overlap)

    @property
    def positions(self) -> tuple[Sides, ...]:
        """First row and column of every tile."""
        return tuple((row, column) for row in self.rows for column in self.columns)

    def __len__(self) -> int:
        return len(self.rows) * len(self.columns)

    def at(self, position: Sides) -> tuple[slice, slice]:
        """The pixels of a tile."""
        (row, column), (height, width) = position, self.tile
        return slice(row, row + height), slice(column, column + width)


def places(length: int, tile: int, overlap: int) -> tuple[int, ...]:
    """The first pixel of each tile along one axis: every tile - overlap pixels, the last one
    so that it ends where the picture does.
    """
    last = length - tile
    return (*range(0, last, tile - overlap), last)


def divided(picture: NDArray[Any], division: Division) -> NDArray[Any]:
    """(height, width, channels) → (tiles, *tile, channels), in the order of `positions`."""
    return np.stack([picture[division.at(position)] for position in division.positions])


def _words(sides: Sides) -> str:
    return f"{sides[0]} × {sides[1]}"


# ----------------------------------------------------------------------
# Tiles shared out among cores: every core gets equally many, so that one program serves all of
# them.
#
# Map-reduce of a picture (R. Lehmann, P. Schaarschmidt, W. Karl, PARS-Mitteilungen 2024): divide,
# group, map over the cores, merge.


def share(tiles: int, cores: int) -> int:
    """Tiles of each core: tiles / cores, rounded up."""
    return -(-tiles // cores)


def grouped(tiles: NDArray[Any], cores: int) -> NDArray[Any]:
    """(tiles, …) → (cores · share, …): core k has those from k · share on.

    What is missing is filled up with the last tile, whose outcome nobody takes.
    """
    missing = cores * share(len(tiles), cores) - len(tiles)
    return np.concatenate([tiles, np.repeat(tiles[-1:], missing, axis=0)])


def ungrouped(groups: NDArray[Any], tiles: int) -> NDArray[Any]:
    """(cores · share, …) → (tiles, …)."""
    return groups[:tiles]


# ----------------------------------------------------------------------
# Tiles that become a picture again: each pixel is the weighted mean of the tiles that hold it.
#
# p(x) = Σ_t w(x - x_t) p_t(x - x_t) / Σ_t w(x - x_t)

Weights = NDArray[np.float32]


def weights(tile: Sides, blend: Blend) -> Weights:
    """(height, width) of one tile: all 1, or Hann's window along both axes, which lets a tile count
    less toward its border.

    w(i) = sin²(π (i + ½) / n) for i = 0 … n - 1: never 0, so that every pixel has a weight. For n =
    4: 0.146, 0.854, 0.854, 0.146.
    """
    if blend == "none":
        return np.ones(tile, np.float32)
    along = (np.sin(np.pi * (np.arange(side) + 0.5) / side) ** 2 for side in tile)
    return np.multiply.outer(*along).astype(np.float32)


class Merging:
    """The way back from the tiles of one division; the sum of the weights is known before the
    tiles are.
    """

    def __init__(self, division: Division, blend: Blend = "none") -> None:
        self._division = division
        self._weights = weights(division.tile, blend)[..., np.newaxis]  # (*tile, 1)
        self._sum = np.zeros((*division.picture, 1), np.float32)
        for position in division.positions:
            self._sum[division.at(position)] += self._weights

    def __call__(self, tiles: NDArray[Any]) -> NDArray[np.float32]:
        """(tiles, *tile, channels) → (height, width, channels).

        Where one tile of weight 1 lies, its very values.
        """
        picture = np.zeros((*self._division.picture, tiles.shape[-1]), np.float32)
        for position, tile in zip(self._division.positions, tiles, strict=True):
            picture[self._division.at(position)] += self._weights * tile
        return picture / self._sum


# ----------------------------------------------------------------------
# How much the borders of tiles show in a picture.


def borders(first: tuple[int, ...], tile: int, length: int) -> tuple[int, ...]:
    """Along one axis the pixels that lie behind a border: where a tile begins, or one before
    it has ended.
    """
    begins, ends = set(first), {place + tile for place in first}
    return tuple(sorted((begins | ends) - {0, length}))


def seam_ratio(pictures: NDArray[Any], division: Division) -> NDArray[np.float64]:
    """(frames, height, width, channels) → (frames,): mean |difference| of neighbors with a tile's
    border between them, over that of all other neighbors. 1: no seam is seen. NaN without borders,
    or in an even picture.
    """
    wide = pictures.astype(np.float64)
    at_border: list[NDArray[np.float64]] = []
    elsewhere: list[NDArray[np.float64]] = []
    for axis, first in ((1, division.rows), (2, division.columns)):
        behind = borders(first, division.tile[axis - 1], division.picture[axis - 1])
        change = np.moveaxis(
            np.abs(np.diff(wide, axis=axis)), axis, 1
        )  # change[k] is between pixels k and k + 1
        is_border = np.isin(np.arange(change.shape[1]) + 1, behind)
        at_border.append(change[:, is_border].reshape(len(wide), -1))
        elsewhere.append(change[:, ~is_border].reshape(len(wide), -1))
    across, others = (np.concatenate(parts, axis=1) for parts in (at_border, elsewhere))
    if not across.size or not others.size:
        return np.full(len(wide), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = across.mean(axis=1) / others.mean(axis=1)
    return np.where(np.isfinite(ratio), ratio, np.nan)
