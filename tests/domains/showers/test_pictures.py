"""Images of showers: the mapping of cells to pixels, fixed colors, and the number of showers that
fit.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from gan_runtime import pictures
from gan_runtime.domains.showers.features import values_of
from gan_runtime.domains.showers.pictures import CELLS, EMPTY, SUMS
from gan_runtime.pictures import sheet

TINY = (17, 17, 25)
CELL = 3  # pixels per cell of the tiny grid with two showers in a row


def shower(
    *cells: tuple[tuple[int, int, int], float], shape: tuple[int, int, int] = TINY
) -> NDArray[np.float32]:
    """Values (X, Y, Z, 1) of a shower with only the given cells, in GeV."""
    energies = np.zeros(shape, np.float32)
    for place, gev in cells:
        energies[place] = gev
    return values_of(energies)[..., np.newaxis]


def bright(picture: Image.Image, x: int, width: int, height: int) -> list[tuple[int, int]]:
    """The filled cells (right, up) of a view, which is the first of its row, below the titles."""
    box = (x, sheet.LINE, x + width * CELL, sheet.LINE + height * CELL)
    cells = np.asarray(picture.crop(box))[CELL // 2 :: CELL, CELL // 2 :: CELL] != EMPTY
    return [
        (int(column), height - 1 - int(row))
        for row, column in zip(*np.nonzero(cells.any(axis=2)), strict=True)
    ]


def test_projections_show_front_side_and_top() -> None:
    picture = pictures.render("shower_projections", (shower(((3, 5, 20), 0.01))[np.newaxis],))
    side = 17 * CELL + 2
    top = side + 25 * CELL + 2
    assert bright(picture, 0, 17, 17) == [(3, 5)], "the front has x to the right and y upwards"
    assert bright(picture, side, 25, 17) == [(20, 5)], (
        "the side has depth to the right and y upwards"
    )
    assert bright(picture, top, 25, 17) == [(20, 3)], (
        "from above one sees depth to the right and x upwards"
    )


def test_projection_sums_cells_along_the_line_of_sight() -> None:
    behind = shower(((3, 5, 7), 0.002), ((3, 5, 8), 0.003))
    alone = shower(((3, 5, 7), 0.005))
    views = [
        np.asarray(pictures.render("shower_projections", (shower[np.newaxis],)))
        for shower in (behind, alone)
    ]
    front = (slice(sheet.LINE, sheet.LINE + 17 * CELL), slice(0, 17 * CELL))
    assert np.array_equal(views[0][front], views[1][front])
    assert not np.array_equal(views[0], views[1]), "from the side they are next to each other"


def test_colors_mean_the_same_energies_in_every_image() -> None:
    energies = np.asarray([0.0, 1e-9, 1e-4, 10.0, 500.0])
    assert SUMS.colors(energies).tolist() == [
        list(EMPTY),
        [46, 13, 82],
        [46, 13, 82],
        [252, 255, 164],
        [252, 255, 164],
    ]
    steps = SUMS.colors(np.geomspace(1e-4, 10.0, 60)).astype(int).sum(axis=1)
    assert (np.diff(steps) > 0).all(), "more energy is brighter"
    dim, alone = shower(((8, 8, 8), 0.001)), shower(((8, 8, 8), 0.001), ((0, 0, 0), 5.0))
    cells = [
        pictures.render("shower_projections", (shower[np.newaxis],)).getpixel(
            (8 * CELL + 1, sheet.LINE + 8 * CELL + 1)
        )
        for shower in (dim, alone)
    ]
    assert cells[0] == cells[1] != EMPTY, "a bright cell elsewhere does not darken this one"


def test_showers_are_in_two_columns_with_a_count_line() -> None:
    full = np.zeros((64, 51, 51, 25, 1), np.float32)
    picture = pictures.render("shower_projections", (full,))
    width = 2 * (51 + 25 + 25) + 4
    assert picture.size == (2 * width + 10, sheet.LINE + 5 * 104 - 2 + sheet.LINE + 2)
    first = pictures.render("shower_projections", (full[:1],))
    assert first.size == (width, sheet.LINE + 102 + sheet.LINE + 2)
    words = picture.crop((230, picture.height - sheet.LINE, picture.width, picture.height))
    assert (np.asarray(words) > 100).any(), "10 of 64 showers"
    assert pictures.render("shower_projections", (full,), (), pictures.whole(64)).height > 32 * 104


@pytest.mark.parametrize("shape", [(16, 9, 45), (50, 18, 45)], ids=str)
def test_cylindrical_grid_is_drawn(shape: tuple[int, int, int]) -> None:
    rows = shower(((1, 2, 3), 0.1), shape=shape)[np.newaxis].repeat(3, axis=0)
    for name in ("shower_projections", "shower_slices"):
        picture = pictures.render(name, (rows,))
        assert picture.width <= 540
        assert picture.height <= 580
        assert np.asarray(picture).max() > 200


def test_slices_are_evenly_spaced_numbered_layers() -> None:
    rows = shower(((3, 5, 0), 0.1), ((4, 6, 24), 0.1))[np.newaxis]
    picture = pictures.render("shower_slices", (rows,))
    assert picture.size == (8 * (17 * 3 + 2) - 2, sheet.LINE + 17 * 3 + sheet.LINE + 2)
    last = 7 * (17 * 3 + 2)
    positions = [bright(picture, x, 17, 17) for x in range(0, last + 1, 53)]
    assert positions == [[(3, 5)], [], [], [], [], [], [], [(4, 6)]]
    titles = np.asarray(picture.crop((last, 0, last + 51, sheet.LINE)))
    assert (titles > 100).sum() > 10, "layer 25"
    assert CELLS.colors(np.asarray([0.1])).tolist()[0] == list(
        picture.getpixel((3 * 3, sheet.LINE + 11 * 3))
    )  # type: ignore[arg-type]


def test_nan_and_negative_cells_are_drawn_as_empty() -> None:
    broken = shower(((3, 5, 7), 0.01))[np.newaxis].copy()
    whole = pictures.render("shower_projections", (broken,))
    broken[0, 0, 0, 0, 0], broken[0, 1, 1, 1, 0] = np.nan, -3.0
    assert pictures.render("shower_projections", (broken,)).tobytes() == whole.tobytes()
    assert pictures.render("shower_projections", (broken.astype(np.float16),)).size == whole.size


def test_arrays_without_showers_are_refused() -> None:
    for shape in ((2, 17, 17), (2, 17, 17, 25, 3), (0, 17, 17, 25, 1)):
        with pytest.raises(ValueError, match=r"has no showers: give \(rows, x, y, z, 1\)"):
            pictures.render("shower_projections", (np.zeros(shape, np.float32),))
