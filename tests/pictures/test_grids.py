"""Grids: the placement of images, pixel values, and how many images fit."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from gan_runtime import pictures


def pixels(picture: Image.Image) -> list[list[object]]:
    """Rows of gray levels, or of (red, green, blue)."""
    return list(np.asarray(picture).tolist())


def of(*values: float) -> NDArray[np.float32]:
    """Gray images of one pixel."""
    return np.asarray(values, np.float32).reshape(-1, 1, 1, 1)


def test_images_fill_rows_with_black_gaps() -> None:
    grid = pixels(pictures.render("grey_grid", (of(-1, 0, 1, 1, 1, 1, 1, 1, 0),)))
    black = [0] * 22
    assert grid == [
        [0, 0, 0, 128, 0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0, 255],
        black,
        black,
        [128, *black[1:]],
    ]


def test_pixel_values_survive_rendering() -> None:
    """Truncation would darken pixels: float32 gives 254.99998 for some."""
    levels = np.arange(256, dtype=np.uint8)
    images = (levels.astype(np.float32) / np.float32(127.5) - np.float32(1.0)).reshape(1, 16, 16, 1)
    picture = pictures.render("grey_grid", (images,))
    assert np.asarray(picture)[:, :16].reshape(-1).tolist() == levels.tolist()


def test_non_finite_pixels_are_black_and_values_are_clipped() -> None:
    grid = np.asarray(pictures.render("grey_grid", (of(np.nan, 3.0, -3.0, np.inf, -np.inf),)))
    assert grid[0, ::3][:5].tolist() == [0, 255, 0, 255, 0]


def test_a_grey_grid_matches_its_stored_checksum(tmp_path: Path) -> None:
    images = np.random.RandomState(0).uniform(-1.1, 1.1, (64, 28, 28, 1)).astype(np.float32)
    picture = pictures.render("grey_grid", (images,))
    assert (picture.mode, picture.size) == ("L", (8 * 30 - 2, 8 * 30 - 2))
    assert (
        hashlib.sha256(picture.tobytes()).hexdigest()
        == "e8ecc7dbd1cb1307b0615180466bae871a669afe2550e0edd1fd777edc7f4eab"
    )
    pictures.save(picture, tmp_path / "samples" / "samples-00001.png")
    assert [path.name for path in (tmp_path / "samples").iterdir()] == ["samples-00001.png"]
    with Image.open(tmp_path / "samples" / "samples-00001.png") as image:
        assert image.tobytes() == picture.tobytes()


def test_a_color_grid_keeps_its_colors() -> None:
    images = np.asarray([[-1, 0, 1], [1, 1, -1]], np.float32).reshape(2, 1, 1, 3)
    grid = pictures.render("rgb_grid", (images,))
    assert pixels(grid)[0][:4] == [[0, 128, 255], [0, 0, 0], [0, 0, 0], [255, 255, 0]]
    assert pixels(pictures.render("rgb_grid", (of(0),)))[0][0] == 128


@pytest.mark.parametrize(
    ("side", "count", "size"),
    [
        (64, 64, (8 * 66 - 2, 8 * 66 - 2)),
        (128, 64, (4 * 130 - 2, 4 * 130 - 2)),  # 16 of them
        (256, 64, (2 * 258 - 2, 2 * 258 - 2)),
        (600, 2, (600, 600)),
        (28, 400, (8 * 30 - 2, 17 * 30 - 2)),
    ],
)
def test_a_grid_contains_fewer_large_images(side: int, count: int, size: tuple[int, int]) -> None:
    assert pictures.render("rgb_grid", (np.zeros((count, side, side, 3), np.float32),)).size == size


@pytest.mark.parametrize(
    ("count", "columns", "rows"), [(16, 8, 2), (64, 8, 8), (100, 10, 10), (256, 16, 16)]
)
def test_a_requested_sheet_contains_all_images(count: int, columns: int, rows: int) -> None:
    images = np.zeros((count, 128, 128, 3), np.float32)
    images[-1] = 1.0
    picture = pictures.render("rgb_grid", (images,), limits=pictures.whole(count))
    assert picture.size == (columns * 130 - 2, rows * 130 - 2)
    assert picture.getpixel((picture.width - 1, picture.height - 1)) == (255, 255, 255)


@pytest.mark.parametrize(
    ("name", "shapes", "sentence"),
    [
        ("oil", [(1, 2, 2, 1)], r"there is no renderer 'oil': use grey_grid, rgb_grid, "),
        (
            "grey_grid",
            [(1, 2, 2, 3)],
            r"an array of \(1, 2, 2, 3\) cannot be drawn: use \(rows, height, width, 1\)\.",
        ),
        (
            "rgb_grid",
            [(1, 2, 2, 2)],
            r"use \(rows, height, width, 1\) or \(rows, height, width, 3\)\.",
        ),
        ("rgb_grid", [(0, 2, 2, 1)], r"an array of \(0, 2, 2, 1\) cannot be drawn"),
        ("filmstrip", [(1, 2, 2, 1)], r"use \(rows, frames, height, width, 1\) or"),
        (
            "labelled_grid",
            [(4, 2, 2, 1)],
            r"labelled_grid draws 2 arrays \(images, labels\), but got 1\.",
        ),
        (
            "labelled_grid",
            [(4, 2, 2, 1), (3,)],
            r"got 4 images but 3 labels: use one for each",
        ),
        (
            "triplets",
            [(4, 2, 2, 1), (3, 2, 2, 1), (4, 2, 2, 1)],
            r"has 4 inputs and 3 outputs and 4 targets: give equally many",
        ),
    ],
)
def test_unsupported_arrays_are_refused(
    name: str, shapes: list[tuple[int, ...]], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        pictures.render(name, tuple(np.zeros(shape, np.float32) for shape in shapes))
