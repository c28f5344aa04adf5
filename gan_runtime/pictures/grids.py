"""Images side by side, row by row, and sequences of frames: one row each, time from left to
right.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gan_runtime.pictures import sheet
from gan_runtime.pictures.sheet import GAP, OF_AN_EPOCH, Room


def grey_grid(
    arrays: tuple[NDArray[np.generic], ...], _: tuple[str, ...], room: Room
) -> Image.Image:
    """One array (N, height, width, 1); of more than fit by the rule in sheet.py the first ones."""
    return sheet.image(tiled(sheet.pixels(arrays[0], (1,)), room))


def rgb_grid(
    arrays: tuple[NDArray[np.generic], ...], _: tuple[str, ...], room: Room
) -> Image.Image:
    """One array (N, height, width, 3), or 1 for grey images."""
    return sheet.image(tiled(sheet.pixels(arrays[0]), room))


def tiled(levels: NDArray[np.uint8], room: Room = OF_AN_EPOCH) -> NDArray[np.uint8]:
    """uint8 (rows · (height + gap) - gap, columns · (width + gap) - gap, channels) of images
    (N, height, width, channels).
    """
    height, width, channels = levels.shape[1:]
    columns = sheet.columns(width, room)
    shown = levels[: columns * sheet.fitting(height, room.tallest)]
    rows = -(-len(shown) // columns)
    grid = np.zeros(
        (rows * (height + GAP) - GAP, columns * (width + GAP) - GAP, channels), np.uint8
    )
    for index, image in enumerate(shown):
        top, left = index // columns * (height + GAP), index % columns * (width + GAP)
        grid[top : top + height, left : left + width] = image
    return grid


def filmstrip(
    arrays: tuple[NDArray[np.generic], ...], _: tuple[str, ...], room: Room
) -> Image.Image:
    """One array (N, frames, height, width, 1 or 3).

    Of more frames than fit evenly spread ones, the first and the last among them, and a line below
    says so; of more sequences than fit the first ones.
    """
    levels = sheet.pixels(arrays[0], rank=5)
    frames, height, width, channels = levels.shape[1:]
    columns = min(frames, sheet.fitting(width, room.widest))
    rows = min(len(levels), sheet.fitting(height, room.tallest))
    picture = sheet.canvas(columns * (width + GAP) - GAP, rows * (height + GAP) - GAP, channels)
    for column, frame in enumerate(shown_frames(frames, columns)):
        for row in range(rows):
            picture.paste(
                sheet.image(levels[row, frame]), (column * (width + GAP), row * (height + GAP))
            )
    return picture if columns == frames else sheet.noted(picture, f"{columns} of {frames:,} frames")


def shown_frames(frames: int, columns: int) -> list[int]:
    """`columns` frames out of 0 to frames - 1, evenly spread.

    One alone is the last: it is the one that was hardest to make.
    """
    if columns == 1:
        return [frames - 1]
    return [round(place * (frames - 1) / (columns - 1)) for place in range(columns)]
