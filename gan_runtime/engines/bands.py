"""Which cell along one axis a tap of a kernel leads to from each outcome, as numbers that a product can take."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def band(taps: int, outcomes: int) -> NDArray[np.float32]:
    """1 where a tap leads from an outcome to a cell of a convolution without stride: (taps, outcomes + taps - 1, outcomes).

    Of 2 taps and 2 outcomes, which read 3 cells: tap 0 gives [[1, 0], [0, 1], [0, 0]], tap 1 [[0, 0], [1, 0], [0, 1]].
    """
    tap, cell, outcome = np.ogrid[:taps, : outcomes + taps - 1, :outcomes]
    return (cell - outcome == tap).astype(np.float32)
