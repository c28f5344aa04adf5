"""How much the borders of tiles show in a picture."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime.engines.tiling.division import Division


def borders(first: tuple[int, ...], tile: int, length: int) -> tuple[int, ...]:
    """Along one axis the pixels that lie behind a border: where a tile begins, or one before it has ended."""
    begins, ends = set(first), {place + tile for place in first}
    return tuple(sorted((begins | ends) - {0, length}))


def seam_ratio(pictures: NDArray[Any], division: Division) -> NDArray[np.float64]:
    """(frames, height, width, channels) → (frames,): mean |difference| of neighbors with a tile's border between them, over that of all
    other neighbors. 1: no seam is seen. NaN without borders, or in an even picture."""
    wide = pictures.astype(np.float64)
    at_border: list[NDArray[np.float64]] = []
    elsewhere: list[NDArray[np.float64]] = []
    for axis, first in ((1, division.rows), (2, division.columns)):
        behind = borders(first, division.tile[axis - 1], division.picture[axis - 1])
        change = np.moveaxis(
            np.abs(np.diff(wide, axis=axis)), axis, 1
        )  # change[k] is between pixels k and k + 1
        is_border = np.isin(np.arange(change.shape[1]) + 1, behind)
        at_border.append(change[:, is_border].reshape(len(wide), -1))
        elsewhere.append(change[:, ~is_border].reshape(len(wide), -1))
    across, others = (np.concatenate(parts, axis=1) for parts in (at_border, elsewhere))
    if not across.size or not others.size:
        return np.full(len(wide), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = across.mean(axis=1) / others.mean(axis=1)
    return np.where(np.isfinite(ratio), ratio, np.nan)
