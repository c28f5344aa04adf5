"""Frames of a flow in colors, and the source, output and target of a network next to each other.

Color is vorticity: red counterclockwise, blue clockwise, white none; the obstacle is gray. The
colors of "RdBu" (C. Brewer, colorbrewer2.org, Apache 2.0), safe for color-blind viewers, have fixed
ends, so that images of different flows, epochs and runs are comparable.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gan_runtime.base.fields import SOURCE
from gan_runtime.domains.flows.fields import OBSTACLE, REYNOLDS, VORTICITY
from gan_runtime.pictures import sheet
from gan_runtime.pictures.sheet import GAP, LINE, SheetLimits

CHANNELS = (OBSTACLE, OBSTACLE + 1)  # channels of a frame, without and with the obstacle
# Evenly spaced from -1 to 1.
ANCHORS = (
    "#053061",
    "#2166AC",
    "#4393C3",
    "#92C5DE",
    "#D1E5F0",
    "#F7F7F7",
    "#FDDBC7",
    "#F4A582",
    "#D6604D",
    "#B2182B",
    "#67001F",
)
STONE = "#4B5058"  # color of an obstacle
NAN = "#000000"
TITLES = ("input", "output", "target")
BETWEEN = 10  # pixels between two triplets
AROUND_TITLE = 2  # pixels on both sides of a title
ACROSS = 2  # triplets at most, so that their titles are legible on a phone
PREVIEW_FRAMES = 4  # evenly spaced among the first rows of a data set


def frame_colors(
    frames: NDArray[np.generic], obstacle: NDArray[np.generic] | None = None
) -> NDArray[np.uint8]:
    """(…, 3) colors of frames (…, 3 or 4) with values from -1 to 1; others are clipped.

    `obstacle`: (…), 0 or 1; default: the fourth channel of the frames.

    Raises:
        ValueError: no frames, or of other channels.
    """
    if 0 in frames.shape or frames.shape[-1:] not in [(number,) for number in CHANNELS]:
        raise ValueError(
            f"a flow of {frames.shape} cannot be drawn: give (…, 3), or (…, 4) with the obstacle."
        )
    if obstacle is None and frames.shape[-1] > OBSTACLE:
        obstacle = frames[..., OBSTACLE]
    values = frames[..., VORTICITY].astype(np.float32)
    colors = diverging(values)
    if obstacle is not None:
        stone = np.asarray(obstacle, np.float32) > 0.5
        colors = np.where(stone[..., np.newaxis], _levels(STONE), colors)
    return colors


def diverging(values: NDArray[np.floating]) -> NDArray[np.uint8]:
    """(…, 3) colors of values (…) from -1 to 1, linear between the anchors; NaN is black."""
    anchors = np.stack([_levels(anchor) for anchor in ANCHORS])
    places = np.linspace(-1.0, 1.0, len(anchors))
    colors = np.stack(
        [np.interp(values, places, anchors[:, channel]) for channel in range(3)], axis=-1
    )
    finite = np.isfinite(values)[..., np.newaxis]
    return np.where(finite, np.rint(np.where(finite, colors, 0.0)), _levels(NAN)).astype(np.uint8)


def _levels(color: str) -> NDArray[np.uint8]:
    """ "#FF8000" → (255, 128, 0)."""
    return np.frombuffer(bytes.fromhex(color.removeprefix("#")), np.uint8)


def triplets(
    arrays: tuple[NDArray[np.generic], ...], _: tuple[str, ...], limits: SheetLimits
) -> Image.Image:
    """Three arrays (N, height, width, 1 or 3) of equally many rows; two triplets next to each other
    where there is space. Inputs with four channels are frames of a flow, the fourth its obstacle.

    Raises:
        ValueError: their numbers of images differ.
    """
    counts = [len(array) for array in arrays]
    if len(set(counts)) > 1:
        numbers = " and ".join(
            f"{count} {title}s" for count, title in zip(counts, TITLES, strict=True)
        )
        raise ValueError(f"triplets has {numbers}: give equally many of each.")
    height = max(array.shape[1] for array in arrays)
    lefts, width = _columns([array.shape[2] for array in arrays])
    across = min(ACROSS, counts[0], sheet.fitting(width, limits.widest, BETWEEN))
    rows = min(-(-counts[0] // across), sheet.fitting(height, limits.tallest))
    parts = _parts(tuple(array[: rows * across] for array in arrays))
    channels = max(part.shape[-1] for part in parts)
    picture = sheet.canvas(
        across * (width + BETWEEN) - BETWEEN, LINE + rows * (height + GAP) - GAP, channels
    )
    for group in range(across):
        for title, left in zip(TITLES, lefts, strict=True):
            sheet.write(picture, group * (width + BETWEEN) + left + AROUND_TITLE, LINE // 2, title)
    for index in range(len(parts[0])):
        top = LINE + index // across * (height + GAP)
        for part, left in zip(parts, lefts, strict=True):
            picture.paste(
                _as(part[index], channels), (index % across * (width + BETWEEN) + left, top)
            )
    return picture


def _parts(arrays: tuple[NDArray[np.generic], ...]) -> list[NDArray[np.uint8]]:
    """The pixels of each, (N, height, width, 1 or 3)."""
    if arrays[0].shape[-1] <= OBSTACLE:
        return [sheet.pixels(array) for array in arrays]
    obstacle = arrays[0][..., OBSTACLE]
    return [frame_colors(array, obstacle) for array in arrays]


def _columns(of_images: list[int]) -> tuple[list[int], int]:
    """Left ends of the three columns of a triplet, and its width. A column is as wide as its images
    and its title.
    """
    titled = [sheet.length(title) + 2 * AROUND_TITLE for title in TITLES]
    widths = [max(image, title) for image, title in zip(of_images, titled, strict=True)]
    lefts = [sum(widths[:place]) + place * GAP for place in range(len(widths))]
    return lefts, lefts[-1] + widths[-1]


def _as(levels: NDArray[np.uint8], channels: int) -> Image.Image:
    """The image with this number of channels; gray images next to color images get
    equal channels.
    """
    return sheet.image(np.broadcast_to(levels, (*levels.shape[:2], channels)).copy())


def first_rows(rows: Mapping[str, NDArray[Any]]) -> Image.Image | None:
    """Four frames of the first rows of a data set, as stored; None for other rows."""
    if REYNOLDS not in rows:
        return None
    source = rows[SOURCE]
    frames = frame_colors(source[:: -(-len(source) // PREVIEW_FRAMES)])
    return sheet.image(sheet.tiled(frames, SheetLimits(columns=PREVIEW_FRAMES // 2)))
