"""Pictures of rows: the first ones of a data set, for a look before training, and one of what is
being made.

The latter is renewed now and then, for a page that waits for it, and gone before the set takes its
place.
"""

from __future__ import annotations

import importlib
import io
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gan_runtime.base.fields import IMAGES, SOURCE, TARGET
from gan_runtime.catalog.domains import DOMAINS
from gan_runtime.pictures import sheet
from gan_runtime.pictures.sheet import EVERYTHING, OF_AN_EPOCH, SheetLimits

SHOWN = 16  # rows that are asked for, of which all pictures are drawn
PAIRS_SHOWN = 6  # two side by side
WIDEST = 1_056  # pixels; pairs of large pictures are drawn smaller


def png(rows: NDArray[np.uint8], limits: SheetLimits = OF_AN_EPOCH) -> bytes:
    """`rows`: (N, height, width, 1 or 3), side by side; of more than fit the first ones
    (pictures/sheet.py).
    """
    return _encoded(sheet.image(sheet.tiled(rows, limits)))


def of_pairs(pairs: NDArray[np.uint8]) -> bytes:
    """`pairs`: (N, height, 2 · width, 3), source left, target right; the first six, in two
    columns.
    """
    limits = SheetLimits(columns=2, widest=EVERYTHING, tallest=EVERYTHING)
    picture = sheet.image(sheet.tiled(pairs[:PAIRS_SHOWN], limits))
    picture.thumbnail((WIDEST, EVERYTHING))
    return _encoded(picture)


def of_rows(rows: Mapping[str, NDArray[Any]]) -> bytes | None:
    """The first rows of a set as stored: its pictures, its pairs, or what a domain draws of
    them; None where nothing is drawn.
    """
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


FILE = "live.png"  # beside the rows of the new set
SECONDS_BETWEEN = 1.0
ENLARGED = 3  # pixels a side for each that is drawn


class LivePicture:
    """Lies in the `folder` of a set in the making."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._file, self._clock = folder / FILE, clock
        self._drawn_s = -SECONDS_BETWEEN

    def renew(self, draw: Callable[[], NDArray[np.uint8]]) -> None:
        """Draws it anew, uint8 (height, width, 3), unless that was done a moment ago.

        Whoever reads it sees the old one or the new one.
        """
        now_s = self._clock()
        if now_s - self._drawn_s < SECONDS_BETWEEN:
            return
        self._drawn_s = now_s
        picture, aside = Image.fromarray(draw()), self._file.with_suffix(".new")
        size = picture.width * ENLARGED, picture.height * ENLARGED
        picture.resize(size, Image.Resampling.BICUBIC).save(aside, format="PNG")
        aside.replace(self._file)


def remove(folder: Path) -> None:
    """It is no part of the set."""
    (folder / FILE).unlink(missing_ok=True)


def read(work: Path) -> bytes | None:
    """The newest picture of a job that makes a set, by its folder `work`; None where there is
    none, or none any more.
    """
    try:
        return next(work.glob(f"*/*/{FILE}")).read_bytes()
    except (StopIteration, OSError):
        return None
