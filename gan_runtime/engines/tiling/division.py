"""Where the tiles of a picture lie: they cover it exactly, in rows from the top left.

    Division(picture=(80, 192), tile=(64, 64), overlap=0)     6 tiles: rows 0 and 16, columns 0, 64 and 128

Tiles that do not fit evenly are moved inward, so the last two share more than `overlap`; none hangs over the edge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Sides = tuple[int, int]  # along height and width, in pixels


@dataclass(frozen=True)
class Division:
    """`picture`, `tile`: sides in pixels; `overlap`: pixels that neighbors share at least.

    Raises:
        ValueError: a tile that is larger than the picture, or an overlap that is not below the tile's sides.
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
                f"overlap is {self.overlap}, but allowed is 0 to {min(self.tile) - 1}: one below the side of a tile."
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
    """The first pixel of each tile along one axis: every tile - overlap pixels, the last one so that it ends where the picture does."""
    last = length - tile
    return (*range(0, last, tile - overlap), last)


def divided(picture: NDArray[Any], division: Division) -> NDArray[Any]:
    """(height, width, channels) → (tiles, *tile, channels), in the order of `positions`."""
    return np.stack([picture[division.at(position)] for position in division.positions])


def _words(sides: Sides) -> str:
    return f"{sides[0]} × {sides[1]}"
