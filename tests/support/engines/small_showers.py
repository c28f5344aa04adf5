"""Showers on grids of a few cells, with energies, deposits and angles. Needs no framework."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime.data.contract import ArraySet
from gan_runtime.domains.showers.entry import (
    ANGLE,
    CELL_UNITS,
    DEPOSIT,
    ENERGY,
    SHOWERS,
    shower_fields,
)
from gan_runtime.domains.showers.features import measured_angle, values_of
from gan_runtime.domains.showers.simulation import simulate

GRID = (5, 6, 4)


def small_showers(
    rows: int, grid: tuple[int, int, int] = GRID, first_is_empty: bool = True
) -> ArraySet:
    """Random showers of 10 to 500 GeV that deposit 2% of their energy. Every second one has an
    empty last layer; the first one can be empty.
    """
    random = np.random.default_rng(5)
    energies = random.uniform(10.0, 500.0, rows).astype(np.float32)
    cells = random.exponential(1.0, (rows, *grid)) ** 3
    cells[::2, :, :, -1] = 0.0
    cells *= (0.02 * energies / cells.sum(axis=(1, 2, 3)))[:, None, None, None]
    cells[0] *= not first_is_empty
    return _set(cells, energies)


def simulated_showers(rows: int) -> ArraySet:
    """Showers of 100 to 500 GeV on the authors' grid, from the project's simulation."""
    random = np.random.default_rng(5)
    energies = random.uniform(100.0, 500.0, rows)
    return _set(
        simulate(energies, np.full(rows, np.radians(75.0)), random), energies.astype(np.float32)
    )


def _set(cells: NDArray[Any], energies: NDArray[np.float32]) -> ArraySet:
    """A data set of cells (rows, X, Y, Z) and energies (rows,), both in GeV."""
    fields = shower_fields((*cells.shape[1:], 1))
    arrays = {
        SHOWERS: values_of(cells)[..., None].astype(np.float16),
        ENERGY: energies,
        DEPOSIT: (CELL_UNITS * cells.sum(axis=(1, 2, 3))).astype(np.float32),
        ANGLE: measured_angle(cells),
    }
    return ArraySet("showers", fields, arrays, "test")
