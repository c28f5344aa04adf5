"""Rows of a data set as one picture."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gan_runtime.pictures import grids, sheet

SHOWN = 16  # rows of a set on its card
_FOLDER = Path(__file__).parent


def png(rows: NDArray[np.uint8]) -> bytes:
    """`rows`: (N, height, width, 1 or 3), side by side; of more than fit the first ones (pictures/sheet.py)."""
    file = io.BytesIO()
    sheet.image(grids.tiled(rows)).save(file, format="PNG", optimize=True)
    return file.getvalue()


def embedded(name: str) -> Path | None:
    """The picture of a set that is inside scikit-learn, which the dashboard does not load; None for other sets."""
    path = _FOLDER / f"{name}.png"
    return path if path.is_file() else None
