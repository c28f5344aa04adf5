"""Frames in about a sixth of their room, for films that travel: a level of 256 for each value, and of these the differences.

    k = round(127 v)         v in [-1, 1]; a level is 0.008, which is 0.04 of ω D / U
    d = Δx Δy Δt k mod 256   each from the pixel before, which is 0 at the edges; channels first

Neighbors are alike, in space and in time, so most of d is near 0, and deflate packs it well. 16-bit values as they are it packs hardly at all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

LEVELS = 127  # on either side of 0
KIND = np.dtype(np.int8)
_AXES = (1, 2, 3)  # of (channels, frames, height, width)


def of(frames: NDArray[np.floating]) -> NDArray[np.int8]:
    """(frames, height, width, channels) → (channels, frames, height, width).

    Raises:
        ValueError: a value is not in [-1, 1], such as the NaN of a model that has run away.
    """
    if not (np.abs(frames) <= 1.0).all():
        raise ValueError("a frame has values beyond -1 to 1")
    levels = np.rint(frames.astype(np.float32) * LEVELS).astype(np.int8)
    differences: NDArray[Any] = np.moveaxis(levels, -1, 0)
    for axis in _AXES:
        differences = np.diff(differences, axis=axis, prepend=np.int8(0))
    return np.ascontiguousarray(differences)


def frames(differences: NDArray[np.int8]) -> NDArray[np.float16]:
    """The way back: each value off by half a level at most, and by what float16 rounds."""
    levels: NDArray[Any] = differences
    for axis in _AXES:
        levels = np.cumsum(levels, axis=axis, dtype=np.int8)
    return np.moveaxis(np.divide(levels, LEVELS, dtype=np.float16), 0, -1)
