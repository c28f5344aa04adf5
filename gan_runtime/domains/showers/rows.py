"""From measured cells to the rows of a data set."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime.domains.showers.angle import measured_angle
from gan_runtime.domains.showers.cell_values import ANGLE, CELL_UNITS, DEPOSIT, ENERGY, SHOWERS, values_of


def rows_of(
    cells_gev: NDArray[Any], energies_gev: NDArray[Any], angles: NDArray[Any] | None = None
) -> dict[str, NDArray[Any]]:
    """Cells (N, X, Y, Z) and energies (N,), both in GeV → rows by field, as `fields.shower_fields` stores them.

    `angles`: (N,), rad, where they are known already; else they are measured on the cells.
    """
    measured = measured_angle(cells_gev) if angles is None else angles
    return {**rows_without_angle(cells_gev, energies_gev), ANGLE: measured.astype(np.float32)}


def rows_without_angle(cells_gev: NDArray[Any], energies_gev: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """As `rows_of`, of showers that all come in at one angle."""
    return {
        SHOWERS: values_of(cells_gev)[..., None].astype(np.float16),
        ENERGY: energies_gev.astype(np.float32),
        DEPOSIT: CELL_UNITS * cells_gev.sum(axis=(1, 2, 3), dtype=np.float32),
    }
