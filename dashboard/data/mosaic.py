"""Rows of a data set as one picture."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime.calorimeter.fields import SHOWERS, cells_of
from gan_runtime.data.contract import Arrays
from gan_runtime.fields import IMAGES
from gan_runtime.pictures import grids, sheet

SHOWN = 16  # rows of a set on its card
DECADES = 3.0  # of energy, from black to white
_FOLDER = Path(__file__).parent


def png(rows: NDArray[np.uint8]) -> bytes:
    """`rows`: (N, height, width, 1 or 3), side by side; of more than fit the first ones (pictures/sheet.py)."""
    file = io.BytesIO()
    sheet.image(grids.tiled(rows)).save(file, format="PNG", optimize=True)
    return file.getvalue()


def of_rows(rows: Arrays) -> bytes | None:
    """The first rows of a set: its pictures, or its showers from the side; None where it has neither."""
    if IMAGES in rows:
        return png(rows[IMAGES])
    return png(from_the_side(rows[SHOWERS])) if SHOWERS in rows else None


def from_the_side(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Showers as stored (N, X, Y, Z, 1) → uint8 (N, Y, Z, 1): energy summed along x, depth to the right, logarithmic.

    White is the brightest cell of each shower's picture, black a thousandth of it and less.
    """
    seen = cells_of(values[..., 0]).sum(axis=1)  # (N, Y, Z)
    brightest = np.maximum(seen.max(axis=(1, 2), keepdims=True), np.finfo(np.float32).tiny)
    steps = np.log10(np.maximum(seen / brightest, 10.0**-DECADES)) / DECADES + 1.0  # 0 to 1
    return np.round(255.0 * steps)[..., None].astype(np.uint8)


def embedded(name: str) -> Path | None:
    """The picture of a set that is inside scikit-learn, which the dashboard does not load; None for other sets."""
    path = _FOLDER / f"{name}.png"
    return path if path.is_file() else None
