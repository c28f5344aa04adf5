"""Showers in numbers: energies of cells to the values that networks see, and back. Names and fields: shower_fields.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime.domains.showers.fields import (
    ANGLE,
    CELL_UNITS,
    DEPOSIT,
    ENERGY,
    ENERGY_SCALE,
    POWER,
    SHOWERS,
    shower_fields,
)

__all__ = [
    "ANGLE",
    "CELL_UNITS",
    "DEPOSIT",
    "ENERGY",
    "ENERGY_SCALE",
    "POWER",
    "SHOWERS",
    "cells_of",
    "shower_fields",
    "values_of",
]


def values_of(cells_gev: NDArray[Any]) -> NDArray[np.float32]:
    """Energies of cells in GeV, at least 0 → values, of the same shape."""
    values = np.asarray(cells_gev, np.float32) * np.float32(CELL_UNITS)
    filled = values != 0.0  # 98 of 100 cells are empty, and a power takes longer than all else
    values[filled] **= np.float32(POWER)
    return values


def cells_of(values: NDArray[Any]) -> NDArray[np.float32]:
    """Values → energies of cells in GeV, of the same shape. What a network makes negative counts as an empty cell."""
    positive = np.maximum(values, 0.0).astype(np.float32)
    return np.power(positive, np.float32(1.0 / POWER)) / np.float32(CELL_UNITS)
