"""A row for each class, or several where there is room for them, with its name on the left."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gan_runtime.pictures import sheet
from gan_runtime.pictures.sheet import GAP, INSET, LINE, Room

WIDEST_NAME = 120
LARGE, LARGE_FONT_SIZE = (
    48,
    20,
)  # from so many pixels an image on: pages show such a picture at about half its size
MARGIN = 6  # between a name and its images
BETWEEN = 8  # between two classes where one has several rows


def labelled_grid(
    arrays: tuple[NDArray[np.generic], ...], classes: tuple[str, ...], room: Room
) -> Image.Image:
    """Images (N, height, width, 1 or 3) and the number of each one's class (N,); a class without a
    name is called by its number.

    The first classes of those that have images, by their numbers; a line below says of how many.

    Raises:
        ValueError: not one label for each image.
    """
    images, labels = sheet.pixels(arrays[0]), _whole(arrays[1])
    if len(labels) != len(images):
        raise ValueError(
            f"labelled_grid was given {len(images)} images but {len(labels)} labels: give one for"
            " each."
        )
    present = np.unique(labels)
    shown = present[: min(room.classes, sheet.fitting(_cell(images), room.tallest_named))].tolist()
    rows = [(_name(number, classes), images[labels == number]) for number in shown]
    picture = _drawn(rows, images.shape[1:], room)
    every = max(len(classes), len(present))
    return (
        picture
        if len(shown) == every
        else sheet.noted(picture, f"{len(shown)} of {every:,} classes")
    )


def _drawn(
    rows: list[tuple[str, NDArray[np.uint8]]], shape: tuple[int, ...], room: Room
) -> Image.Image:
    height, width, channels = shape
    cell = max(height, LINE)
    columns = min(sheet.columns(width, room), max(len(images) for _, images in rows))
    size = LARGE_FONT_SIZE if height >= LARGE else sheet.FONT_SIZE
    names = [sheet.fitted(name, WIDEST_NAME, size) for name, _ in rows]
    margin = INSET + max(sheet.length(name, size) for name in names) + MARGIN
    lines = [min(-(-len(images) // columns), room.lines) for _, images in rows]
    between = BETWEEN if max(lines) > 1 else 0
    tops = [sum(lines[:row]) * (cell + GAP) + row * between for row in range(len(rows))]
    below = tops[-1] + lines[-1] * (cell + GAP) - GAP
    picture = sheet.canvas(margin + columns * (width + GAP) - GAP, below, channels)
    for name, (_, images), top, own in zip(names, rows, tops, lines, strict=True):
        sheet.write(picture, INSET, top + cell // 2, name, size)
        for place, image in enumerate(images[: own * columns]):
            left = margin + place % columns * (width + GAP)
            line = place // columns * (cell + GAP)
            picture.paste(sheet.image(image), (left, top + line + (cell - height) // 2))
    return picture


def _cell(images: NDArray[np.uint8]) -> int:
    return max(images.shape[1], LINE)


def _whole(labels: NDArray[np.generic]) -> NDArray[np.int64]:
    """Labels may come as floats, as everything does that a network has seen."""
    return np.rint(labels.reshape(-1).astype(np.float64)).astype(np.int64)


def _name(number: int, classes: tuple[str, ...]) -> str:
    return classes[number] if 0 <= number < len(classes) else str(number)
