"""The first rows of a data set as one picture, for a look before training."""

from __future__ import annotations

import importlib
import io
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gan_runtime.base.fields import IMAGES, SOURCE, TARGET
from gan_runtime.catalog.domains import DOMAINS
from gan_runtime.pictures import grids, sheet
from gan_runtime.pictures.sheet import EVERYTHING, OF_AN_EPOCH, Room

SHOWN = 16  # rows that are asked for, of which all pictures are drawn
PAIRS_SHOWN = 6  # two side by side
WIDEST = 1_056  # pixels; pairs of large pictures are drawn smaller


def png(rows: NDArray[np.uint8], room: Room = OF_AN_EPOCH) -> bytes:
    """`rows`: (N, height, width, 1 or 3), side by side; of more than fit the first ones (pictures/sheet.py)."""
    return _encoded(sheet.image(grids.tiled(rows, room)))


def of_pairs(pairs: NDArray[np.uint8]) -> bytes:
    """`pairs`: (N, height, 2 · width, 3), source left, target right; the first six, in two columns."""
    room = Room(columns=2, widest=EVERYTHING, tallest=EVERYTHING)
    picture = sheet.image(grids.tiled(pairs[:PAIRS_SHOWN], room))
    picture.thumbnail((WIDEST, EVERYTHING))
    return _encoded(picture)


def of_rows(rows: Mapping[str, NDArray[Any]]) -> bytes | None:
    """The first rows of a set as stored: its pictures, its pairs, or what a domain draws of them; None where nothing is drawn."""
    if IMAGES in rows:
        return png(rows[IMAGES])
    for domain in DOMAINS:
        picture = _of_domain(domain.first_rows, rows)
        if picture is not None:
            return _encoded(picture)
    if SOURCE in rows:
        return of_pairs(np.concatenate([rows[SOURCE], rows[TARGET]], axis=2))
    return None


def _of_domain(drawer: str, rows: Mapping[str, NDArray[Any]]) -> Image.Image | None:
    """`drawer`: "module:function"; "" of a domain that draws none."""
    if not drawer:
        return None
    module, _, function = drawer.partition(":")
    picture: Image.Image | None = getattr(importlib.import_module(module), function)(rows)
    return picture


def _encoded(picture: Image.Image) -> bytes:
    file = io.BytesIO()
    picture.save(file, format="PNG", optimize=True)
    return file.getvalue()
