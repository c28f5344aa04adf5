"""Rows of a data set as one picture."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gan_runtime import pictures
from gan_runtime.data.contract import Arrays
from gan_runtime.fields import IMAGES
from gan_runtime.frame_fields import REYNOLDS, SOURCE, TARGET
from gan_runtime.pictures import grids, sheet, vorticity
from gan_runtime.pictures.sheet import OF_AN_EPOCH, Room
from gan_runtime.shower_fields import SHOWERS

SHOWN = 16  # rows of a set on its card
SHOWERS_SHOWN = 4
FRAMES_SHOWN = 4  # of a flow, as far from each other as can be
_FOLDER = Path(__file__).parent


def png(rows: NDArray[np.uint8], room: Room = OF_AN_EPOCH) -> bytes:
    """`rows`: (N, height, width, 1 or 3), side by side; of more than fit the first ones (pictures/sheet.py)."""
    return _encoded(sheet.image(grids.tiled(rows, room)))


def of_rows(rows: Arrays) -> bytes | None:
    """The first rows of a set as stored: its pictures, its pairs, its flow or its showers; None where it has none of them."""
    if IMAGES in rows:
        return png(rows[IMAGES])
    if REYNOLDS in rows:
        return png(vorticity.drawn(rows[SOURCE][:: SHOWN // FRAMES_SHOWN]), Room(columns=FRAMES_SHOWN // 2))
    if SOURCE in rows:
        return png(np.concatenate([rows[SOURCE], rows[TARGET]], axis=2))
    if SHOWERS not in rows:
        return None
    return _encoded(pictures.render("shower_projections", (rows[SHOWERS][:SHOWERS_SHOWN],)))


def _encoded(picture: Image.Image) -> bytes:
    file = io.BytesIO()
    picture.save(file, format="PNG", optimize=True)
    return file.getvalue()


def embedded(name: str) -> Path | None:
    """The picture of a set that is inside scikit-learn, which the dashboard does not load; None for other sets."""
    path = _FOLDER / f"{name}.png"
    return path if path.is_file() else None
