"""Images of showers: three views of each next to each other, or some of its layers.

Colors are those of "inferno" (S. van der Walt and N. Smith, CC0), logarithmic between fixed
energies, so that images of different epochs, runs and energies are comparable. The background is
dark on all pages; an empty cell is a shade lighter, which shows the borders of the detector.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gan_runtime.domains.showers.entry import SHOWERS
from gan_runtime.domains.showers.features import cells_of
from gan_runtime.pictures import sheet
from gan_runtime.pictures.sheet import GAP, LINE, OF_AN_EPOCH, SheetLimits, spaced_frames

_STOPS = (
    (0, 0, 4),
    (31, 12, 72),
    (85, 15, 109),
    (136, 34, 106),
    (186, 54, 85),
    (227, 89, 51),
    (249, 140, 10),
    (249, 201, 50),
    (252, 255, 164),
)
EMPTY = (14, 12, 30)
FAINTEST = 0.16  # start of the color range; darker colors look like an empty cell
BETWEEN = 10  # pixels between two neighboring showers
LAYER_PIXELS = 48  # the least width of a layer, so that its number fits above it
BAR_PIXELS = 96
FIRST_ROWS = 5  # showers in the preview of a data set


@dataclass(frozen=True)
class ColorScale:
    """GeV of the first and of the last color; lower energies above 0 have the first color, higher
    ones the last.
    """

    low_gev: float
    high_gev: float
    words: tuple[str, str]

    def colors(self, gev: NDArray[np.floating]) -> NDArray[np.uint8]:
        """(…, 3) of energies (…), logarithmic from low to high; EMPTY for 0."""
        share = np.log10(np.maximum(gev, self.low_gev) / self.low_gev) / np.log10(
            self.high_gev / self.low_gev
        )
        colors = _inferno(FAINTEST + (1.0 - FAINTEST) * np.clip(share, 0.0, 1.0))
        return np.where((gev > 0)[..., np.newaxis], colors, EMPTY).astype(np.uint8)


SUMS = ColorScale(
    1e-4, 10.0, ("0.1 MeV", "10 GeV")
)  # along an axis: some GeV in the core of 500 GeV
CELLS = ColorScale(1e-5, 1.0, ("0.01 MeV", "1 GeV"))


def shower_projections(
    arrays: tuple[NDArray[np.generic], ...], _: tuple[str, ...], limits: SheetLimits
) -> Image.Image:
    """One array (N, X, Y, Z, 1) of values: sums of each shower along z, x and y, in GeV.

    Two showers are next to each other where there is space; if not all fit, a line below says so.
    """
    cells = cells_in_gev(arrays[0])
    views = [sums_along(cells, view) for view in VIEWS]
    across = max(1, limits.columns // 4)
    cell = max(
        1, (min(limits.widest, 528) - BETWEEN) // 2 // sum(view.shape[2] + GAP for view in views)
    )
    # (N, height, width, 3) each
    views_in_color = [_enlarged(SUMS.colors(view), cell) for view in views]
    titles = [view.name for view in VIEWS]
    width = sum(part.shape[2] + GAP for part in views_in_color) - GAP
    height = max(part.shape[1] for part in views_in_color)
    across = min(across, sheet.fitting(width, limits.widest, BETWEEN), len(cells))
    rows = min(-(-len(cells) // across), sheet.fitting(height, limits.tallest))
    picture = sheet.canvas(
        across * (width + BETWEEN) - BETWEEN, LINE + rows * (height + GAP) - GAP, 3
    )
    for column in range(across):
        _titled(
            picture, column * (width + BETWEEN), [part.shape[2] for part in views_in_color], titles
        )
    for index in range(min(len(cells), across * rows)):
        left, below = (
            index % across * (width + BETWEEN),
            LINE + index // across * (height + GAP) + height,
        )
        for part in views_in_color:
            picture.paste(sheet.image(part[index]), (left, below - part.shape[1]))
            left += part.shape[2] + GAP
    return _explained(picture, SUMS, min(len(cells), across * rows), len(cells))


def shower_slices(
    arrays: tuple[NDArray[np.generic], ...], _: tuple[str, ...], limits: SheetLimits
) -> Image.Image:
    """One array (N, X, Y, Z, 1) of values: a row for each shower, with evenly spaced layers of its
    cells in GeV from the first to the last, x to the right and y upwards.
    """
    cells = cells_in_gev(arrays[0])
    cell = max(1, -(-LAYER_PIXELS // cells.shape[1]))
    layers = cells.transpose(0, 3, 2, 1)  # (N, Z, Y, X)
    width, height = cells.shape[1] * cell, cells.shape[2] * cell
    columns = min(layers.shape[1], sheet.columns(width, limits))
    layer_numbers = spaced_frames(layers.shape[1], columns)
    rows = min(len(cells), sheet.fitting(height, limits.tallest))
    picture = sheet.canvas(columns * (width + GAP) - GAP, LINE + rows * (height + GAP) - GAP, 3)
    _titled(picture, 0, [width] * columns, [f"layer {layer + 1}" for layer in layer_numbers])
    for column, layer in enumerate(layer_numbers):
        tiles = _enlarged(CELLS.colors(layers[:rows, layer]), cell)
        for row in range(rows):
            place = (column * (width + GAP), LINE + row * (height + GAP))
            picture.paste(sheet.image(tiles[row]), place)
    return _explained(picture, CELLS, rows, len(cells))


def first_rows(rows: Mapping[str, NDArray[Any]]) -> Image.Image | None:
    """The first showers of a data set, as stored; None for other rows."""
    if SHOWERS not in rows:
        return None
    return shower_projections((rows[SHOWERS][:FIRST_ROWS],), (), OF_AN_EPOCH)


def _enlarged(colors: NDArray[np.uint8], cell: int) -> NDArray[np.uint8]:
    """(N, height · cell, width · cell, 3) of (N, height, width, 3), with row 0 at the bottom."""
    return colors[:, ::-1].repeat(cell, axis=1).repeat(cell, axis=2)


def _inferno(shares: NDArray[np.floating]) -> NDArray[np.floating]:
    """(…, 3) from 0 to 255, linear between the stops."""
    stops = np.asarray(_STOPS, np.float64)
    places = np.linspace(0.0, 1.0, len(stops))
    return np.stack(
        [np.interp(shares, places, stops[:, channel]) for channel in range(3)], axis=-1
    ).round()


def _titled(picture: Image.Image, left: int, widths: list[int], titles: list[str]) -> None:
    """A title above each part, cut to its width."""
    for width, title in zip(widths, titles, strict=True):
        sheet.write(
            picture, left + sheet.INSET, LINE // 2 - 1, sheet.fitted(title, width - sheet.INSET)
        )
        left += width + GAP


def _explained(picture: Image.Image, scale: ColorScale, count: int, every: int) -> Image.Image:
    """The image with a line below: the color bar, and the number of showers."""
    low, high = scale.words
    begin = sheet.INSET + sheet.length(low) + sheet.INSET
    end = begin + BAR_PIXELS + sheet.INSET
    words = f"{count} of {every:,} showers" if count < every else ""
    needed = (
        end
        + sheet.length(high)
        + sheet.INSET
        + (sheet.length(words) + 3 * sheet.INSET if words else 0)
    )
    wider = sheet.canvas(max(picture.width, needed), picture.height + LINE + GAP, 3)
    wider.paste(picture)
    middle = picture.height + GAP + LINE // 2
    sheet.write(wider, sheet.INSET, middle, low)
    energies = np.geomspace(scale.low_gev, scale.high_gev, BAR_PIXELS)
    wider.paste(sheet.image(np.tile(scale.colors(energies), (8, 1, 1))), (begin, middle - 4))
    sheet.write(wider, end, middle, high)
    if words:
        sheet.write(wider, wider.width - sheet.length(words) - sheet.INSET, middle, words)
    return wider


# ---- projections ---------------------------------------------------------------------------------
# Sums of the cells of a shower along each axis. A row is (X, Y, Z): X and Y across the incoming
# particle, Z along it, from the front of the calorimeter to its back.

_AXES = "xyz"


@dataclass(frozen=True)
class ShowerView:
    """Axes, 0 for x, 1 for y, 2 for z: `summed`: the line of sight; `right`, `up`: of the image."""

    name: str
    title: str
    summed: int
    right: int
    up: int

    @property
    def across(self) -> str:
        """The name of the axis to the right."""
        return _AXES[self.right]

    @property
    def upwards(self) -> str:
        """The name of the upward axis."""
        return _AXES[self.up]


# An inclined particle leans along y, so the side view shows its angle.
VIEWS = (
    ShowerView("front", "from the front", summed=2, right=0, up=1),
    ShowerView("side", "from the side", summed=0, right=2, up=1),
    ShowerView("top", "from above", summed=1, right=2, up=0),
)


def sums_along(cells_gev: NDArray[np.floating], view: ShowerView) -> NDArray[np.float32]:
    """GeV (N, up, right) of showers (N, X, Y, Z) in GeV, row 0 at the bottom: of 51 × 51 × 25 cells
    (N, 51, 51) from the front and (N, 51, 25) from the side and from above.
    """
    summed = cells_gev.sum(axis=1 + view.summed, dtype=np.float32)  # keeps the order of the others
    return summed if view.up < view.right else summed.transpose(0, 2, 1)


def cells_in_gev(values: NDArray[np.generic]) -> NDArray[np.float32]:
    """GeV (N, X, Y, Z) of values (N, X, Y, Z, 1) or without the last axis; NaN and negative ones
    count as 0.

    Raises:
        ValueError: the array has another shape.
    """
    if values.ndim not in (4, 5) or values.shape[4:] not in ((), (1,)) or 0 in values.shape:
        raise ValueError(f"an array of {values.shape} has no showers: give (rows, x, y, z, 1).")
    amounts = np.clip(
        np.where(np.isnan(numbers := values.astype(np.float32)), 0.0, numbers), 0.0, 1e6
    )
    return cells_of(amounts.reshape(values.shape[:4]))
