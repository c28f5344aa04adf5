"""What a dataset hands over, and what can be said of it before anything is read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class ImageSet:
    """A training set in memory.

    `images`: uint8 (N, height, width, channels), 0 is black. `origin`: where the files came from. `note`: anything the
    person should know about it, such as a reduced number of images; empty otherwise.
    """

    name: str
    images: NDArray[np.uint8]
    origin: str
    note: str = ""


@dataclass(frozen=True)
class Availability:
    """Whether a dataset can be read right now. `images` is the number a run would train on."""

    ready: bool
    images: int
    origin: str
    note: str = ""
