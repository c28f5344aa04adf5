"""A flow in colors: which way it turns, red against the clock's hands, blue with them, white not at all; the obstacle is grey.

The colors are those of "RdBu" (C. Brewer, colorbrewer2.org, Apache 2.0), which color-blind people tell apart, between fixed ends, so
that pictures of different flows, epochs and runs can be compared.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gan_runtime.domains.flows.fields import OBSTACLE, VORTICITY

CHANNELS = (OBSTACLE, OBSTACLE + 1)  # of a frame: without the obstacle and with it
# From -1 to 1, evenly spread.
ANCHORS = (
    "#053061",
    "#2166AC",
    "#4393C3",
    "#92C5DE",
    "#D1E5F0",
    "#F7F7F7",
    "#FDDBC7",
    "#F4A582",
    "#D6604D",
    "#B2182B",
    "#67001F",
)
STONE = "#4B5058"  # of an obstacle
NOWHERE = "#000000"  # of what is no number


def drawn(frames: NDArray[np.generic], obstacle: NDArray[np.generic] | None = None) -> NDArray[np.uint8]:
    """(…, 3) colors of frames (…, 3 or 4) with values from -1 to 1; what is beyond is cut.

    `obstacle`: (…), 1 where it is; without it the frames' own, if they have a fourth channel.

    Raises:
        ValueError: no frames, or of other channels.
    """
    if 0 in frames.shape or frames.shape[-1:] not in [(number,) for number in CHANNELS]:
        raise ValueError(
            f"a flow of {frames.shape} cannot be drawn: give (…, 3), or (…, 4) with the obstacle."
        )
    if obstacle is None and frames.shape[-1] > OBSTACLE:
        obstacle = frames[..., OBSTACLE]
    values = frames[..., VORTICITY].astype(np.float32)
    colors = diverging(values)
    if obstacle is not None:
        stone = np.asarray(obstacle, np.float32) > 0.5
        colors = np.where(stone[..., np.newaxis], _levels(STONE), colors)
    return colors


def diverging(values: NDArray[np.floating]) -> NDArray[np.uint8]:
    """(…, 3) colors of values (…) from -1 to 1, straight lines between the anchors; NaN is black."""
    anchors = np.stack([_levels(anchor) for anchor in ANCHORS])
    places = np.linspace(-1.0, 1.0, len(anchors))
    colors = np.stack([np.interp(values, places, anchors[:, channel]) for channel in range(3)], axis=-1)
    known = np.isfinite(values)[..., np.newaxis]
    return np.where(known, np.rint(np.where(known, colors, 0.0)), _levels(NOWHERE)).astype(np.uint8)


def _levels(color: str) -> NDArray[np.uint8]:
    """ "#FF8000" → (255, 128, 0)."""
    return np.frombuffer(bytes.fromhex(color.removeprefix("#")), np.uint8)
