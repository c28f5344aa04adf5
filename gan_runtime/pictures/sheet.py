"""What all renderers share: how values become pixels, how many images a picture may hold, and words
on it.

The rule of size for pictures of an epoch, of which a run keeps hundreds (`OF_AN_EPOCH`): images
stand two pixels apart, at most 8 beside each other and never wider together than 528 pixels, which
is 8 of 64 pixels and 4 of 128. Pictures with a row for each class have at most 20 rows and 1,320
pixels of height, all others 528. So none has more than 0.9 million pixels: a color picture that
nothing can be compressed in is a file of 2.7 MB. An image that is larger than all this stands
alone, as large as it is. Pictures that someone asks for hold all of their images (`whole`).
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
EVERYTHING = 1_000_000  # pixels, rows or lines: more than anyone asks for
INSET = 4  # pixels before the first word: pages round the corners of pictures
LINE = 16  # height of a line of words
FONT_SIZE = 12  # at 11 its spaces close up
INK = "#d0d3d9"  # of words on black
CHANNELS = (1, 3)


@dataclass(frozen=True)
class Room:
    """How large a picture may become.

    `columns`: of images. `widest`, `tallest`: pixels of all images together; where each class has
    its rows, `classes` of them and `tallest_named` pixels, and `lines` rows of images for each.
    """

    columns: int = COLUMNS
    widest: int = 528
    tallest: int = 528
    classes: int = 20
    tallest_named: int = 1_320  # 20 rows of 64 pixels, 10 of 128
    lines: int = 1


OF_AN_EPOCH = Room()


def whole(count: int) -> Room:
    """For all of `count` images, about as many beside as below each other: 8 columns for 64
    of them, 16 for 256.
    """
    columns = min(max(COLUMNS, math.ceil(math.sqrt(count))), MOST_COLUMNS)
    return Room(columns, EVERYTHING, EVERYTHING, EVERYTHING, EVERYTHING, EVERYTHING)


def pixels(
    values: NDArray[np.generic], channels: tuple[int, ...] = CHANNELS, rank: int = 4
) -> NDArray[np.uint8]:
    """Bytes of values from -1 to 1, of the same shape; NaN is black, and what is beyond the range
    is cut.

    Raises:
        ValueError: no images, or of other channels; the message says what is drawn.
    """
    if values.ndim != rank or values.shape[-1] not in channels or 0 in values.shape:
        sizes = "rows, height, width" if rank == 4 else "rows, frames, height, width"
        wanted = " or ".join(f"({sizes}, {number})" for number in channels)
        raise ValueError(f"an array of {values.shape} cannot be drawn here: give {wanted}.")
    levels = (values.astype(np.float32, copy=False) + 1.0) * 127.5
    return np.rint(np.clip(np.nan_to_num(levels, nan=0.0), 0, 255)).astype(np.uint8)


def fitting(size: int, room: int, gap: int = GAP) -> int:
    """How many cells of `size` pixels fit into `room` pixels; one always does."""
    return max(1, (room + gap) // (size + gap))


def columns(width: int, room: Room) -> int:
    """How many images of a width stand beside each other."""
    return min(room.columns, fitting(width, room.widest))


def image(levels: NDArray[np.uint8]) -> Image.Image:
    """(height, width, 1 or 3) as a grey or color image."""
    return Image.fromarray(levels[..., 0] if levels.shape[-1] == 1 else levels)


def canvas(width: int, height: int, channels: int) -> Image.Image:
    """All black, grey or in color."""
    return Image.new("L" if channels == 1 else "RGB", (width, height))


@cache
def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """The one that comes with Pillow, so that a picture looks the same on every host."""
    return ImageFont.load_default(size=size)


def length(words: str, size: int = FONT_SIZE) -> int:
    """Pixels from the beginning to the end of the words."""
    return int(np.ceil(font(size).getlength(words)))


def fitted(words: str, width: int, size: int = FONT_SIZE) -> str:
    """The words, or their beginning where they are too long."""
    if length(words, size) <= width:
        return words
    beginnings = (f"{words[:end]}…" for end in range(len(words) - 1, 0, -1))
    return next((beginning for beginning in beginnings if length(beginning, size) <= width), "…")


def write(picture: Image.Image, left: int, middle: int, words: str, size: int = FONT_SIZE) -> None:
    """Puts words on the picture; `middle`: of their height."""
    ImageDraw.Draw(picture).text((left, middle), words, fill=INK, font=font(size), anchor="lm")


def noted(picture: Image.Image, words: str) -> Image.Image:
    """The picture with a line of words below it."""
    wider = Image.new(
        picture.mode, (max(picture.width, INSET + length(words)), picture.height + LINE)
    )
    wider.paste(picture)
    write(wider, INSET, picture.height + LINE // 2, words)
    return wider
