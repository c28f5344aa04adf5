"""The colors of a flow: two scales, an obstacle and a few greys in ONE palette of 256, so that a frame is bytes, in the browser, in a
GIF and in an MP4 alike. Those with a sign are the colors of all pictures of flows (domains/flows/pictures.py)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gan_runtime.domains.flows.pictures import ANCHORS as SIGNED
from gan_runtime.domains.flows.pictures import STONE

LEVELS = 113  # of each scale; an odd number, so that zero has the color in the middle
GREYS = 28  # from white to ink, for words
# viridis at equal distances: as bright as it is high, also for color-blind people.
UNSIGNED = ("#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725")
WHITE, INK = "#ffffff", "#31333f"
OF_OBSTACLE, OF_WHITE = 2 * LEVELS, 2 * LEVELS + 1
Bytes = NDArray[np.uint8]


def places(values: NDArray[np.floating], low: float, high: float, signed: bool) -> Bytes:
    """The place of each number in the palette, (…) → (…); beyond the ends those of the ends, and of what is no number the middle."""
    share = np.clip((values.astype(np.float32) - low) / (high - low), 0.0, 1.0)
    levels = np.rint(np.nan_to_num(share, nan=0.5) * (LEVELS - 1)).astype(np.uint8)
    return levels if signed else levels + np.uint8(LEVELS)


def gradient(signed: bool) -> str:
    """The scale as CSS, left to right."""
    return f"linear-gradient(to right, {', '.join(SIGNED if signed else UNSIGNED)})"


def _between(anchors: tuple[str, ...], levels: int) -> NDArray[np.float64]:
    """(levels, 3) from 0 to 255, in straight lines between the anchors."""
    known = np.array([[int(color[begin : begin + 2], 16) for begin in (1, 3, 5)] for color in anchors], float)
    at = np.linspace(0.0, len(anchors) - 1.0, levels)
    return np.stack([np.interp(at, np.arange(len(anchors)), known[:, part]) for part in range(3)], axis=1)


def _palette() -> Bytes:
    """(256, 3): the scale with a sign, the other one, the obstacle, and greys from white to ink; the rest is black."""
    parts = [
        _between(SIGNED, LEVELS),
        _between(UNSIGNED, LEVELS),
        _between((STONE,), 1),
        _between((WHITE, INK), GREYS),
    ]
    colors = np.rint(np.concatenate(parts)).astype(np.uint8)
    return np.concatenate([colors, np.zeros((256 - len(colors), 3), np.uint8)])


PALETTE = _palette()
