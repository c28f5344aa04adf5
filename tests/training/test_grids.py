"""Sample grids: where each image lies, and how values become pixels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from gan_runtime.training.grids import grid_pixels, write_grid


def test_images_lie_row_by_row_with_black_gaps() -> None:
    images = np.stack([np.full((1, 1, 1), value, np.float32) for value in (-1.0, 0.0, 1.0)])
    assert grid_pixels(images, columns=2).tolist() == [
        [0, 0, 0, 128],
        [0, 0, 0, 0],
        [0, 0, 0, 0],
        [255, 0, 0, 0],
    ]


def test_a_pixel_of_the_data_comes_back_as_it_was() -> None:
    """Cutting off what stands after the point would darken pixels, as float32 gives 254.99998 for some."""
    levels = np.arange(256, dtype=np.uint8)
    images = (levels.astype(np.float32) / np.float32(127.5) - np.float32(1.0)).reshape(1, 16, 16, 1)
    assert grid_pixels(images, columns=1).reshape(-1).tolist() == levels.tolist()


def test_images_that_are_no_numbers_are_black() -> None:
    assert grid_pixels(np.full((1, 1, 2, 1), np.nan, np.float32), columns=1).tolist() == [[0, 0]]


def test_values_beyond_the_range_are_clipped() -> None:
    assert grid_pixels(np.full((1, 1, 1, 1), 3.0, np.float32)).max() == 255


def test_a_grid_of_64_is_a_readable_png_and_leaves_nothing_else(tmp_path: Path) -> None:
    write_grid(np.zeros((64, 28, 28, 1), np.float32), tmp_path / "samples" / "epoch-00001.png")
    assert [path.name for path in (tmp_path / "samples").iterdir()] == ["epoch-00001.png"]
    assert Image.open(tmp_path / "samples" / "epoch-00001.png").size == (8 * 30 - 2, 8 * 30 - 2)
