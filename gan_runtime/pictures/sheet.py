"""Sheets of images: their layout and lettering, and the renderers of grids, classes and filmstrips.

Sample images of an epoch, of which a run stores hundreds, have at most 0.9 million pixels, or
2.7 MB as a PNG that nothing compresses (`OF_AN_EPOCH`). An image larger than the limit is drawn
alone in its full size. Sheets on request show all of their images (`whole`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

GAP = 2  # black pixels between neighbors
COLUMNS, MOST_COLUMNS = 8, 16
EVERYTHING = 1_000_000  # pixels, rows or lines: more than any request
INSET = 4  # pixels before the first word: pages round the corners of images
LINE = 16  # pixels of height of a line of text
FONT_SIZE = 12  # at 11 the spaces between words disappear
INK = "#d0d3d9"  # of text on black
CHANNELS = (1, 3)
WIDEST_NAME = 120  # pixels, of a class
# Image side from which the large font is used, since pages halve large sheets.
LARGE, LARGE_FONT_SIZE = 48, 20
MARGIN = 6  # pixels between the name of a class and its images
BETWEEN = 8  # pixels between two classes that have several rows

Arrays = tuple[NDArray[np.generic], ...]


@dataclass(frozen=True)
class SheetLimits:
    """The largest size of a sheet.

    `columns`: of images. `widest`, `tallest`: pixels of all images together. For sheets with rows
    by class: at most `classes` of them in `tallest_named` pixels, with `lines` rows each.
    """

    columns: int = COLUMNS
    widest: int = 528
    tallest: int = 528
    classes: int = 20
    tallest_named: int = 1_320  # 20 rows of 64 pixels, 10 of 128
    lines: int = 1


OF_AN_EPOCH = SheetLimits()


def whole(count: int) -> SheetLimits:
    """Limits that fit all of `count` images, as square as possible in 8 to 16 columns."""
    columns = min(max(COLUMNS, math.ceil(math.sqrt(count))), MOST_COLUMNS)
    return SheetLimits(columns, EVERYTHING, EVERYTHING, EVERYTHING, EVERYTHING, EVERYTHING)


# ---- pixels and cells ----------------------------------------------------------------------------


def pixels(
    values: NDArray[np.generic], channels: tuple[int, ...] = CHANNELS, rank: int = 4
) -> NDArray[np.uint8]:
    """Values from -1 to 1 as bytes of the same shape, clipped; NaN is black.

    Raises:
        ValueError: no images, or other channels.
    """
    if values.ndim != rank or values.shape[-1] not in channels or 0 in values.shape:
        sizes = "rows, height, width" if rank == 4 else "rows, frames, height, width"
        shapes = " or ".join(f"({sizes}, {number})" for number in channels)
        raise ValueError(f"an array of {values.shape} cannot be drawn: use {shapes}.")
    levels = (values.astype(np.float32, copy=False) + 1.0) * 127.5
    return np.rint(np.clip(np.nan_to_num(levels, nan=0.0), 0, 255)).astype(np.uint8)


def fitting(size: int, space: int, gap: int = GAP) -> int:
    """The number of cells of `size` pixels that fit into `space` pixels, at least 1."""
    return max(1, (space + gap) // (size + gap))


def columns(width: int, limits: SheetLimits) -> int:
    """The number of images of this width in a row."""
    return min(limits.columns, fitting(width, limits.widest))


def image(levels: NDArray[np.uint8]) -> Image.Image:
    """A grayscale or color image from (height, width, 1 or 3) bytes."""
    return Image.fromarray(levels[..., 0] if levels.shape[-1] == 1 else levels)


def canvas(width: int, height: int, channels: int) -> Image.Image:
    """A black image."""
    return Image.new("L" if channels == 1 else "RGB", (width, height))


# ---- lettering -----------------------------------------------------------------------------------


@cache
def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """Pillow's own font: sheets look the same on every host."""
    return ImageFont.load_default(size=size)


def length(words: str, size: int = FONT_SIZE) -> int:
    """Pixels from the beginning to the end of the words."""
    return int(np.ceil(font(size).getlength(words)))


def fitted(words: str, width: int, size: int = FONT_SIZE) -> str:
    """The words, cut to `width` pixels."""
    if length(words, size) <= width:
        return words
    beginnings = (f"{words[:end]}…" for end in range(len(words) - 1, 0, -1))
    return next((beginning for beginning in beginnings if length(beginning, size) <= width), "…")


def write(picture: Image.Image, left: int, middle: int, words: str, size: int = FONT_SIZE) -> None:
    """Writes on the image; `middle`: of the words' height."""
    ImageDraw.Draw(picture).text((left, middle), words, fill=INK, font=font(size), anchor="lm")


def captioned(picture: Image.Image, words: str) -> Image.Image:
    """The image with a line of text below it."""
    wider = Image.new(
        picture.mode, (max(picture.width, INSET + length(words)), picture.height + LINE)
    )
    wider.paste(picture)
    write(wider, INSET, picture.height + LINE // 2, words)
    return wider


# ---- renderers: (arrays, names of classes, limits) → image ---------------------------------------


def grey_grid(arrays: Arrays, _: tuple[str, ...], limits: SheetLimits) -> Image.Image:
    """(N, height, width, 1); the first images if not all fit."""
    return image(tiled(pixels(arrays[0], (1,)), limits))


def rgb_grid(arrays: Arrays, _: tuple[str, ...], limits: SheetLimits) -> Image.Image:
    """(N, height, width, 1 or 3); the first images if not all fit."""
    return image(tiled(pixels(arrays[0]), limits))


def tiled(levels: NDArray[np.uint8], limits: SheetLimits = OF_AN_EPOCH) -> NDArray[np.uint8]:
    """Arranges (N, height, width, channels) in one array (rows · (height + gap) - gap, columns ·
    (width + gap) - gap, channels).
    """
    height, width, channels = levels.shape[1:]
    across = columns(width, limits)
    levels = levels[: across * fitting(height, limits.tallest)]
    rows = -(-len(levels) // across)
    shape = (rows * (height + GAP) - GAP, across * (width + GAP) - GAP, channels)
    grid = np.zeros(shape, np.uint8)
    for index, cell in enumerate(levels):
        top, left = index // across * (height + GAP), index % across * (width + GAP)
        grid[top : top + height, left : left + width] = cell
    return grid


def filmstrip(arrays: Arrays, _: tuple[str, ...], limits: SheetLimits) -> Image.Image:
    """(N, frames, height, width, 1 or 3): a row per sequence, time from left to right.

    If not all frames fit, evenly spaced ones with the first and the last, and a caption says so.
    """
    levels = pixels(arrays[0], rank=5)
    frames, height, width, channels = levels.shape[1:]
    across = min(frames, fitting(width, limits.widest))
    rows = min(len(levels), fitting(height, limits.tallest))
    picture = canvas(across * (width + GAP) - GAP, rows * (height + GAP) - GAP, channels)
    for column, frame in enumerate(spaced_frames(frames, across)):
        for row in range(rows):
            place = (column * (width + GAP), row * (height + GAP))
            picture.paste(image(levels[row, frame]), place)
    return picture if across == frames else captioned(picture, f"{across} of {frames:,} frames")


def spaced_frames(frames: int, count: int) -> list[int]:
    """`count` of the frames 0 to frames - 1, evenly spaced; a single one is the last, the hardest
    to generate.
    """
    if count == 1:
        return [frames - 1]
    return [round(place * (frames - 1) / (count - 1)) for place in range(count)]


def labelled_grid(arrays: Arrays, classes: tuple[str, ...], limits: SheetLimits) -> Image.Image:
    """Images (N, height, width, 1 or 3) and labels (N,): rows by class, with its name or number.

    If not all classes fit, the first ones, and a caption says so.

    Raises:
        ValueError: not one label for each image.
    """
    images = pixels(arrays[0])
    # Labels can be floats.
    labels = np.rint(arrays[1].reshape(-1).astype(np.float64)).astype(np.int64)
    if len(labels) != len(images):
        raise ValueError(
            f"labelled_grid got {len(images)} images but {len(labels)} labels: use one for each."
        )
    numbers = np.unique(labels)
    count = max(len(classes), len(numbers))
    rows_that_fit = fitting(max(images.shape[1], LINE), limits.tallest_named)
    numbers = numbers[: min(limits.classes, rows_that_fit)]
    rows = [(class_name(number, classes), images[labels == number]) for number in numbers.tolist()]
    picture = _named_rows(rows, images.shape[1:], limits)
    if len(rows) == count:
        return picture
    return captioned(picture, f"{len(rows)} of {count:,} classes")


def class_name(number: int, classes: tuple[str, ...]) -> str:
    """The name of a class; its number if it has none."""
    return classes[number] if 0 <= number < len(classes) else str(number)


def _named_rows(
    rows: list[tuple[str, NDArray[np.uint8]]], shape: tuple[int, ...], limits: SheetLimits
) -> Image.Image:
    height, width, channels = shape
    cell = max(height, LINE)
    across = min(columns(width, limits), max(len(images) for _, images in rows))
    size = LARGE_FONT_SIZE if height >= LARGE else FONT_SIZE
    names = [fitted(name, WIDEST_NAME, size) for name, _ in rows]
    margin = INSET + max(length(name, size) for name in names) + MARGIN
    lines = [min(-(-len(images) // across), limits.lines) for _, images in rows]
    between = BETWEEN if max(lines) > 1 else 0
    tops = [sum(lines[:row]) * (cell + GAP) + row * between for row in range(len(rows))]
    below = tops[-1] + lines[-1] * (cell + GAP) - GAP
    picture = canvas(margin + across * (width + GAP) - GAP, below, channels)
    for name, (_, images), top, own_lines in zip(names, rows, tops, lines, strict=True):
        write(picture, INSET, top + cell // 2, name, size)
        for place, levels in enumerate(images[: own_lines * across]):
            left = margin + place % across * (width + GAP)
            line = place // across * (cell + GAP)
            picture.paste(image(levels), (left, top + line + (cell - height) // 2))
    return picture
