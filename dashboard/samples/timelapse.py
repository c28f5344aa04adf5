"""A film of images of one kind: several runs side by side, one frame per epoch, as an animated
GIF.
"""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageColor, ImageDraw, ImageFont

MILLISECONDS = 400  # of a frame
LAST_MILLISECONDS = 2_000  # of the last frame, so that the end can be seen
MOST_FRAMES = 100
MOST_COLORS = 256
GRAY_WITHIN = 16  # how far the channels of a gray pixel can differ, as at the edges of letters
COLUMNS = 4
MARGIN, LINE = 12, 22  # pixels around everything; height of a line of text
ENLARGED_UP_TO = 2  # runs side by side that are shown at twice their size
SMALL, LARGE = 300, 640  # sides of an image: up to the first enlarged, from the second reduced
WHITE, INK, BLANK = "#ffffff", "#31333f", "#eceef2"


@dataclass(frozen=True)
class Strip:
    """The grids of one run.

    `pngs`: epoch → PNG; `color`: of the square next to the name, "#rrggbb".
    """

    name: str
    color: str
    pngs: dict[int, bytes]


def shown_epochs(epochs: list[int]) -> list[int]:
    """At most MOST_FRAMES epochs, evenly spaced, always with the last."""
    every = -(-len(epochs) // MOST_FRAMES)
    return epochs[::-1][:: max(1, every)][::-1]


def gif(strips: list[Strip], epochs: list[int]) -> bytes:
    """Each epoch is a frame of all runs: the newest grid until then, or an empty field before a
    run's first.

    Raises:
        ValueError: there is no epoch, or no run has a grid.
    """
    if not epochs or not any(strip.pngs for strip in strips):
        raise ValueError("a film needs at least one epoch and one grid")
    size = _size(strips)
    frames = [_frame(strips, epoch, size) for epoch in epochs]
    durations = [MILLISECONDS] * (len(frames) - 1) + [LAST_MILLISECONDS]
    file = io.BytesIO()
    frames[0].save(
        file, format="GIF", save_all=True, append_images=frames[1:], duration=durations, loop=0
    )
    return file.getvalue()


def _size(strips: list[Strip]) -> tuple[int, int]:
    """The size of each run's field, in which its images fit: that of the largest, enlarged if there
    is space.
    """
    sizes = [
        Image.open(io.BytesIO(png)).size
        for strip in strips
        for png in list(strip.pngs.values())[:1]
    ]
    width, height = (max(sides) for sides in zip(*sizes, strict=True))
    side = max(width, height)
    scale = 2.0 if len(strips) <= ENLARGED_UP_TO and side <= SMALL else min(1.0, LARGE / side)
    return round(width * scale), round(height * scale)


def _frame(strips: list[Strip], epoch: int, size: tuple[int, int]) -> Image.Image:
    width, height = size
    across, down = min(COLUMNS, len(strips)), -(-len(strips) // COLUMNS)
    canvas = Image.new(
        "RGB",
        (MARGIN + across * (width + MARGIN), MARGIN + LINE + down * (height + LINE + MARGIN)),
        WHITE,
    )
    draw = ImageDraw.Draw(canvas)
    font = ImageFont.load_default(size=14)
    draw.text((MARGIN, MARGIN), f"Epoch {epoch}", fill=INK, font=font, anchor="lt")
    for index, strip in enumerate(strips):
        left = MARGIN + index % COLUMNS * (width + MARGIN)
        top = MARGIN + LINE + index // COLUMNS * (height + LINE + MARGIN)
        canvas.paste(_grid(strip, epoch, size), (left, top))
        middle = top + height + LINE // 2 + 2
        draw.rectangle((left, middle - 5, left + 10, middle + 5), fill=strip.color)
        draw.text(
            (left + 18, middle),
            _label(strip, epoch, width - 18, font),
            fill=INK,
            font=font,
            anchor="lm",
        )
    return _of_few_colors(canvas, [WHITE, INK, BLANK, *(strip.color for strip in strips)])


def _of_few_colors(canvas: Image.Image, exact: list[str]) -> Image.Image:
    """The image in 256 colors, as in a GIF: these colors exactly, and grays for the rest.

    For colored grids Pillow chooses. Otherwise Pillow would spend nearly all colors on the grays of
    the grids and dull the colors of the runs.
    """
    colors = [ImageColor.getrgb(color) for color in dict.fromkeys(exact)]
    pixels = np.asarray(canvas)
    grays = MOST_COLORS - len(colors)
    index_of_level = np.rint(np.arange(256) / 255 * (grays - 1)).astype(np.uint8) + len(colors)
    indices = index_of_level[pixels[..., 0]]
    # Few pixels: names, squares, empty fields.
    tinted = (pixels[..., 0] != pixels[..., 1]) | (pixels[..., 0] != pixels[..., 2])
    few = pixels[tinted].astype(np.int16)
    places = [(few == color).all(axis=-1) for color in colors]
    apart = np.where(
        np.any(places, axis=0), 0, few.max(axis=-1, initial=0) - few.min(axis=-1, initial=255)
    )
    if apart.max(initial=0) > GRAY_WITHIN:
        return canvas.quantize(MOST_COLORS, dither=Image.Dither.NONE)
    few_indices = indices[tinted]
    for index, place in enumerate(places):
        few_indices[place] = index
    indices[tinted] = few_indices
    reduced = Image.fromarray(indices, mode="P")
    levels = np.rint(np.linspace(0, 255, grays)).astype(int)
    reduced.putpalette(
        [*(level for color in colors for level in color), *np.repeat(levels, 3).tolist()]
    )
    return reduced


def _grid(strip: Strip, epoch: int, size: tuple[int, int]) -> Image.Image:
    epochs = [number for number in strip.pngs if number <= epoch]
    if not epochs:
        return Image.new("RGB", size, BLANK)
    grid = Image.open(io.BytesIO(strip.pngs[max(epochs)])).convert("RGB")
    # The sides can differ from those of other runs.
    scale = min(size[0] / grid.width, size[1] / grid.height)
    fitted = (round(grid.width * scale), round(grid.height * scale))
    field = Image.new("RGB", size, WHITE)
    field.paste(
        grid.resize(fitted, Image.Resampling.NEAREST if scale >= 1 else Image.Resampling.BOX)
    )
    return field


def _label(
    strip: Strip, epoch: int, width: int, font: ImageFont.FreeTypeFont | ImageFont.ImageFont
) -> str:
    """The run's name; after its last grid also the epoch of that."""
    last = max(strip.pngs, default=epoch)
    ended = f" · ends at epoch {last}" if last < epoch else ""
    return _fitting(strip.name, max(0, width - round(font.getlength(ended))), font) + ended


def _fitting(name: str, width: int, font: ImageFont.FreeTypeFont | ImageFont.ImageFont) -> str:
    """The name, shortened if it is too wide."""
    if font.getlength(name) <= width:
        return name
    return next(
        text
        for end in range(len(name), -1, -1)
        if font.getlength(text := f"{name[:end]}…") <= width or not end
    )
