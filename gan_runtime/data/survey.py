"""What a look at somebody's files tells, before anything is stored."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.fields import Fields
from gan_runtime.data.summary import Summary


@dataclass(frozen=True)
class Survey:
    """What a preparation would make, before anything is stored.

    `grid`: uint8 (up to 64, pixels, pixels, channels), the first rows; `grid_labels`: the class of each,
    empty without labels. `bytes_on_disk`: of the prepared set.
    """

    fields: Fields
    rows: int
    summary: Summary
    grid: NDArray[np.uint8]
    grid_labels: tuple[str, ...]
    bytes_on_disk: int
