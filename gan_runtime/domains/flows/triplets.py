"""Input, output and target beside each other, for networks that turn one image into another; frames of a flow by their vorticity."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gan_runtime.domains.flows import vorticity
from gan_runtime.domains.flows.fields import OBSTACLE
from gan_runtime.pictures import sheet
from gan_runtime.pictures.sheet import GAP, LINE, Room

TITLES = ("input", "output", "target")
BETWEEN = 10  # pixels between two triplets
AROUND_TITLE = 2  # on both sides
ACROSS = 2  # triplets at most, so that their titles can be read on a phone


def triplets(arrays: tuple[NDArray[np.generic], ...], _: tuple[str, ...], room: Room) -> Image.Image:
    """Three arrays (N, height, width, 1 or 3) of as many rows; two triplets stand beside each other where there is room.

    Where an input has four channels, all three are frames of a flow, and the fourth is the obstacle of its row.

    Raises:
        ValueError: their numbers of images differ.
    """
    counts = [len(array) for array in arrays]
    if len(set(counts)) > 1:
        given = " and ".join(f"{count} {title}s" for count, title in zip(counts, TITLES, strict=True))
        raise ValueError(f"triplets was given {given}: give as many of each.")
    height = max(array.shape[1] for array in arrays)
    lefts, width = _columns([array.shape[2] for array in arrays])
    across = min(ACROSS, counts[0], sheet.fitting(width, room.widest, BETWEEN))
    rows = min(-(-counts[0] // across), sheet.fitting(height, room.tallest))
    parts = _parts(tuple(array[: rows * across] for array in arrays))
    channels = max(part.shape[-1] for part in parts)
    picture = sheet.canvas(across * (width + BETWEEN) - BETWEEN, LINE + rows * (height + GAP) - GAP, channels)
    for group in range(across):
        for title, left in zip(TITLES, lefts, strict=True):
            sheet.write(picture, group * (width + BETWEEN) + left + AROUND_TITLE, LINE // 2, title)
    for index in range(len(parts[0])):
        top = LINE + index // across * (height + GAP)
        for part, left in zip(parts, lefts, strict=True):
            picture.paste(_as(part[index], channels), (index % across * (width + BETWEEN) + left, top))
    return picture


def _parts(arrays: tuple[NDArray[np.generic], ...]) -> list[NDArray[np.uint8]]:
    """Of each the pixels, (N, height, width, 1 or 3)."""
    if arrays[0].shape[-1] <= OBSTACLE:
        return [sheet.pixels(array) for array in arrays]
    obstacle = arrays[0][..., OBSTACLE]
    return [vorticity.drawn(array, obstacle) for array in arrays]


def _columns(of_images: list[int]) -> tuple[list[int], int]:
    """Where the three columns of a triplet begin, and how wide it is: a column is as wide as its images and its title."""
    titled = [sheet.length(title) + 2 * AROUND_TITLE for title in TITLES]
    widths = [max(image, title) for image, title in zip(of_images, titled, strict=True)]
    lefts = [sum(widths[:place]) + place * GAP for place in range(len(widths))]
    return lefts, lefts[-1] + widths[-1]


def _as(levels: NDArray[np.uint8], channels: int) -> Image.Image:
    """Grey images beside color ones are three equal channels."""
    return sheet.image(np.broadcast_to(levels, (*levels.shape[:2], channels)).copy())
