"""A picture of what is being made, for a page that waits for it: renewed now and then, and gone before the set takes its place."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

FILE = "live.png"  # beside the rows of the new set
SECONDS_BETWEEN = 1.0
ENLARGED = 3  # pixels a side for each that is drawn


class LivePicture:
    """Lies in the `folder` of a set in the making."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._file, self._clock = folder / FILE, clock
        self._drawn_s = -SECONDS_BETWEEN

    def renew(self, draw: Callable[[], NDArray[np.uint8]]) -> None:
        """Draws it anew, uint8 (height, width, 3), unless that was done a moment ago. Whoever reads it sees the old one or the new one."""
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
    """The newest picture of a job that makes a set, by its folder `work`; None where there is none, or none any more."""
    try:
        return next(work.glob(f"*/*/{FILE}")).read_bytes()
    except (StopIteration, OSError):
        return None
