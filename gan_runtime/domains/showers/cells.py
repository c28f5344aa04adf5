"""Showers in numbers: energies of cells to the values that networks see, and back.

Names and fields: shower_fields.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime.domains.showers.fields import (
    ANGLE,
    CELL_UNITS,
    DEPOSIT,
    ENERGY,
    POWER,
    SHOWERS,
)


def values_of(cells_gev: NDArray[Any]) -> NDArray[np.float32]:
    """Energies of cells in GeV, at least 0 → values, of the same shape."""
    values = np.asarray(cells_gev, np.float32) * np.float32(CELL_UNITS)
    filled = values != 0.0  # 98 of 100 cells are empty, and a power takes longer than all else
    values[filled] **= np.float32(POWER)
    return values


def cells_of(values: NDArray[Any]) -> NDArray[np.float32]:
    """Values → energies of cells in GeV, of the same shape.

    What a network makes negative counts as an empty cell.
    """
    positive = np.maximum(values, 0.0).astype(np.float32)
    return np.power(positive, np.float32(1.0 / POWER)) / np.float32(CELL_UNITS)


# ---- angle ---------------------------------------------------------------------------------------
# The angle of a shower, measured on its image: the slope of the line through the barycentres of its
# layers.
#
# The authors' `mtheta` (github.com/svalleco/3Dgan, branch Anglegan;
# github.com/recardoso/ISC_HPC_3DGAN). It counts in cells, and a cell is as deep as a layer but not
# as wide, so it is not the angle of the particle: 60°, 90° and 120° are measured as about 62°, 90°
# and 118°.

OF_NOTHING = 100.0  # what an image without energy measures, rad, as the authors have it
LEAST_GEV = 1e-6 / CELL_UNITS  # a layer, or an image, counts as empty up to this
LEAST_SQUARE = 1e-7  # of a distance, in cells: the layer at the barycentre divides by no zero


def measured_angle(cells_gev: NDArray[Any]) -> NDArray[np.float32]:
    """Cells in GeV, at least 0, (N, X, Y, Z) or (N, X, Y, Z, 1) → angles (N,), rad; 100 for an
    empty image.

    With x, y and z at the centers of the cells, (x_c, y_c, z_c) the barycentre of the shower and
    (x_z, y_z) that of layer z:

        m_z = ± (y_z - y_c) / √((x_z - x_c)² + (z - z_c)²),  minus above the barycentre (z < z_c)
        angle = Σ_z z (π/2 - arctan m_z) / Σ_z z,  over the layers that hold energy
    """
    images = _without_channel(cells_gev)
    layers = images.sum(axis=(1, 2), dtype=np.float64)  # (N, Z)
    x = _barycentres(images.sum(axis=2, dtype=np.float64), layers)  # (N, Z), of each layer
    y = _barycentres(images.sum(axis=1, dtype=np.float64), layers)
    total = layers.sum(axis=1, keepdims=True)  # (N, 1)
    z = np.arange(layers.shape[1]) + 0.5  # (Z,)
    x_center, y_center, z_center = (
        divided((place * layers).sum(axis=1, keepdims=True), total) for place in (x, y, z)
    )  # (N, 1) each
    distance = np.sqrt(np.maximum((x - x_center) ** 2 + (z - z_center) ** 2, LEAST_SQUARE))
    slope = np.where(z < z_center, -1.0, 1.0) * (y - y_center) / distance  # m_z, (N, Z)
    weight = np.where(layers > LEAST_GEV, z, 0.0)
    angles = divided((weight * (np.pi / 2.0 - np.arctan(slope))).sum(axis=1), weight.sum(axis=1))
    return np.where(total[:, 0] > LEAST_GEV, angles, OF_NOTHING).astype(np.float32)


def _without_channel(cells: NDArray[Any]) -> NDArray[Any]:
    return cells[..., 0] if cells.ndim == 5 else cells


def _barycentres(columns: NDArray[np.float64], layers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums along one lateral axis (N, X, Z) → the barycentre of each layer on the other, in
    cells (N, Z); 0 where it is empty.
    """
    places = np.arange(columns.shape[1]) + 0.5
    return divided(np.einsum("nxz,x->nz", columns, places), layers)


def divided(above: NDArray[np.float64], below: NDArray[np.float64]) -> NDArray[np.float64]:
    """0 where there is nothing to divide by."""
    filled = below > 0.0
    return np.where(filled, above / np.where(filled, below, 1.0), 0.0)


# ---- rows ----------------------------------------------------------------------------------------
# From measured cells to the rows of a data set.


def rows_of(
    cells_gev: NDArray[Any], energies_gev: NDArray[Any], angles: NDArray[Any] | None = None
) -> dict[str, NDArray[Any]]:
    """Cells (N, X, Y, Z) and energies (N,), both in GeV → rows by field, as `fields.shower_fields`
    stores them.

    `angles`: (N,), rad, where they are known already; else they are measured on the cells.
    """
    measured = measured_angle(cells_gev) if angles is None else angles
    return {**rows_without_angle(cells_gev, energies_gev), ANGLE: measured.astype(np.float32)}


def rows_without_angle(
    cells_gev: NDArray[Any], energies_gev: NDArray[Any]
) -> dict[str, NDArray[Any]]:
    """As `rows_of`, of showers that all come in at one angle."""
    return {
        SHOWERS: values_of(cells_gev)[..., None].astype(np.float16),
        ENERGY: energies_gev.astype(np.float32),
        DEPOSIT: CELL_UNITS * cells_gev.sum(axis=(1, 2, 3), dtype=np.float32),
    }
