"""Images side by side, row by row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gan_runtime.pictures import sheet
from gan_runtime.pictures.sheet import GAP, OF_AN_EPOCH, Room


def grey_grid(arrays: tuple[NDArray[np.generic], ...], _: tuple[str, ...], room: Room) -> Image.Image:
    """One array (N, height, width, 1); of more than fit by the rule in sheet.py the first ones."""
    return sheet.image(tiled(sheet.pixels(arrays[0], (1,)), room))


def rgb_grid(arrays: tuple[NDArray[np.generic], ...], _: tuple[str, ...], room: Room) -> Image.Image:
    """One array (N, height, width, 3), or 1 for grey images."""
    return sheet.image(tiled(sheet.pixels(arrays[0]), room))


def tiled(levels: NDArray[np.uint8], room: Room = OF_AN_EPOCH) -> NDArray[np.uint8]:
    """uint8 (rows · (height + gap) - gap, columns · (width + gap) - gap, channels) of images (N, height, width, channels)."""
    height, width, channels = levels.shape[1:]
    columns = sheet.columns(width, room)
    shown = levels[: columns * sheet.fitting(height, room.tallest)]
    rows = -(-len(shown) // columns)
    grid = np.zeros((rows * (height + GAP) - GAP, columns * (width + GAP) - GAP, channels), np.uint8)
    for index, image in enumerate(shown):
        top, left = index // columns * (height + GAP), index % columns * (width + GAP)
        grid[top : top + height, left : left + width] = image
    return grid
