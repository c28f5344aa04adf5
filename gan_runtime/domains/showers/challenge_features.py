"""The features by which the CaloChallenge compares showers (arXiv:2410.21611; evaluate.py and HighLevelFeatures.py of
github.com/CaloChallenge/homepage, with this set since November 2023): 2 + 8 Z numbers a shower of Z layers, 362 on data set 2.

Cells below the readout threshold count as 0 first. Two differences change neither FPD nor KPD: lengths are in cells, there in mm / 100 (each
feature is divided by its largest value), and angles begin at 0, there at -π (which turns both signs of every center).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gan_runtime.domains.showers.angle import divided
from gan_runtime.domains.showers.longitudinal import MEV_PER_GEV

THRESHOLD_GEV = 0.5e-6 / 0.033  # 15.15 keV: 0.5 keV that the silicon sees, over the sampling fraction
SMALLEST_MEV = 1e-8  # an empty layer counts as 10⁻⁸ MeV
ROUNDING = 1e-12  # of ⟨p²⟩: a variance below it is none
Array = NDArray[np.float64]


def challenge_features(
    cells_gev: NDArray[np.floating], energy_gev: Array, places: Array, around_beam: bool
) -> Array:
    """(N, 2 + 8 Z): log10 of the incident energy and of each layer's, centers and widths of the layers on both axes, log10 of the total
    energy, sparsity of the layers, centers and widths in r.

    Cells (N, X, Y, Z); NaN and negative ones count as 0. `places`: of the columns of cells on both axes across (2, X, Y). r is measured from
    the beam, or from the middle of a grid that has none. Energies in MeV, lengths in cells.
    """
    cells = np.where(cells_gev >= THRESHOLD_GEV, cells_gev, 0.0).astype(np.float64)
    layers = cells.sum(axis=(1, 2))
    middle = 0.0 if around_beam else np.mean(places, axis=(1, 2), keepdims=True)
    radius = np.sqrt(((places - middle) ** 2).sum(axis=0))
    (x, x_width), (y, y_width), (r, r_width) = (spread(cells, layers, axis) for axis in (*places, radius))
    total = layers.sum(axis=1, keepdims=True)
    sparsity = 1.0 - (cells > 0.0).mean(axis=(1, 2))
    energy = np.log10(energy_gev * MEV_PER_GEV)[:, np.newaxis]
    across = (x, y, x_width, y_width)
    return np.concatenate([energy, log_mev(layers), *across, log_mev(total), sparsity, r, r_width], axis=1)


def log_mev(gev: Array) -> Array:
    """log10 of energies in MeV; -8 of none."""
    return np.asarray(np.log10(gev * MEV_PER_GEV + SMALLEST_MEV))


def spread(cells: NDArray[np.floating], layers: Array, places: Array) -> tuple[Array, Array]:
    """Center ⟨p⟩ and width √(⟨p²⟩ - ⟨p⟩²) of each layer, both (N, Z); 0 for an empty one. Cells (N, X, Y, Z), `places` (X, Y).

    A width that is rounding alone, as of a layer with one cell, is 0: distances would divide by a largest width of 10⁻⁸.
    """
    first, second = (
        divided(np.einsum("nxyz,xy->nz", cells, power, dtype=np.float64, optimize=True), layers)
        for power in (places, places**2)
    )
    variance = second - first**2
    return first, np.sqrt(np.where(variance > ROUNDING * second, variance, 0.0))
