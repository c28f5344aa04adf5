"""Sample grids: images in [-1, 1] side by side as one PNG."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

GAP = 2  # black pixels between neighbours


def write_grid(images: NDArray[np.float32], path: Path) -> None:
    """Writes float (N, height, width, 1 or 3) in [-1, 1] as an 8-column grid; the file appears whole or not at all."""
    path.parent.mkdir(exist_ok=True)
    aside = path.with_suffix(".part")
    Image.fromarray(grid_pixels(images)).save(aside, format="PNG", optimize=True)
    aside.replace(path)


def grid_pixels(images: NDArray[np.float32], columns: int = 8) -> NDArray[np.uint8]:
    """uint8 (rows · (height + gap), columns · (width + gap)) for grey images, with a third axis for colour."""
    # NaN, of networks that have gone wrong, is black.
    pixels = np.rint(np.clip(np.nan_to_num((images + 1.0) * 127.5, nan=0.0), 0, 255)).astype(np.uint8)
    count, height, width, channels = pixels.shape
    rows = -(-count // columns)
    canvas = np.zeros((rows * (height + GAP) - GAP, columns * (width + GAP) - GAP, channels), np.uint8)
    for index, image in enumerate(pixels):
        top, left = index // columns * (height + GAP), index % columns * (width + GAP)
        canvas[top : top + height, left : left + width] = image
    return canvas[..., 0] if channels == 1 else canvas
