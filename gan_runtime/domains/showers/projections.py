"""A shower seen from three sides: sums of its cells along each axis. NumPy alone.

A row is (X, Y, Z): X and Y across the incoming particle, Z along it, from the front of the calorimeter to its back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gan_runtime.domains.showers.cell_values import cells_of

_AXES = "xyz"


@dataclass(frozen=True)
class View:
    """`summed`: the axis that is looked along. `right`, `up`: the axes that the picture has. All of them 0 for x, 1 for y, 2 for z."""

    name: str
    title: str
    summed: int
    right: int
    up: int

    @property
    def across(self) -> str:
        """The name of the axis that goes to the right."""
        return _AXES[self.right]

    @property
    def upwards(self) -> str:
        """The name of the axis that goes up."""
        return _AXES[self.up]


# An inclined particle leans along y, so the side shows its angle.
VIEWS = (
    View("front", "from the front", summed=2, right=0, up=1),
    View("side", "from the side", summed=0, right=2, up=1),
    View("top", "from above", summed=1, right=2, up=0),
)


def seen(cells_gev: NDArray[np.floating], view: View) -> NDArray[np.float32]:
    """GeV (N, up, right) of showers (N, X, Y, Z) in GeV; row 0 is the lowest place, and so the lowest of a picture.

    A full grid of 51 × 51 × 25 is (N, 51, 51) from the front and (N, 51, 25) from the side and from above.
    """
    summed = cells_gev.sum(axis=1 + view.summed, dtype=np.float32)  # both other axes stay in their order
    return summed if view.up < view.right else summed.transpose(0, 2, 1)


def cells_in_gev(values: NDArray[np.generic]) -> NDArray[np.float32]:
    """GeV (N, X, Y, Z) of what a network gives, (N, X, Y, Z, 1) or without the last axis; below zero and NaN are zero.

    Raises:
        ValueError: the array has another shape.
    """
    if values.ndim not in (4, 5) or values.shape[4:] not in ((), (1,)) or 0 in values.shape:
        raise ValueError(f"an array of {values.shape} holds no showers: give (rows, x, y, z, 1).")
    amounts = np.clip(np.where(np.isnan(numbers := values.astype(np.float32)), 0.0, numbers), 0.0, 1e6)
    return cells_of(amounts.reshape(values.shape[:4]))
