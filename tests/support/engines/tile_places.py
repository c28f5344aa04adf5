"""The tiles of a program in other orders and with other neighbors, for both engines' processes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gan_runtime.engines.tile_grid import TileGrid, split_tiles
from gan_runtime.engines.tiles import ROUND, Stopwatch
from tests.support.engines import toy_translator

# Six tiles each, in two rounds.
ORDERS = ((0, 1, 2, 3, 4, 5), (5, 3, 1, 4, 2, 0), (1, 1, 1, 0, 2, 2))


def by_order(program: Any, precision: str) -> list[np.ndarray]:
    """The output for the tiles in each order."""
    side = toy_translator.TILE
    tiles = split_tiles(toy_translator.picture(20, 40), TileGrid((20, 40), (side, side)))
    watch = Stopwatch()
    watch.next_image()
    predict = program(toy_translator.translator(precision), 1, (2, ROUND, *tiles.shape[1:]), watch)
    rounds = np.array([2], np.int32)
    return [predict(tiles[list(order)], rounds) for order in ORDERS]
