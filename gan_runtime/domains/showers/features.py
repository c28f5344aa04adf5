"""Showers in numbers: the values of their cells, rows of a data set, and the features that are
measured on each of them.

Energies in GeV, places in cells (the center of the first cell is 0.5). On a grid around the beam,
whose first axis is periodic, places across are x = r cos α, y = r sin α, with r in cells.

Sources: github.com/svalleco/3Dgan (analysis), sections "moments", "hits", "shower shapes";
CaloChallenge, arXiv:2410.21611, section 5 (centers of energy, widths).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime.domains.showers.entry import (
    ANGLE,
    CELL_UNITS,
    DEPOSIT,
    ENERGY,
    MEV_PER_GEV,
    POWER,
    SHOWERS,
)

Array = NDArray[np.float64]

HIT_GEV = 2e-4  # a cell that counts as hit (authors: hits above 0.2 MeV)
ORDERS = (1, 2, 3)  # orders of moments: mean, variance, third central moment
BLOCK = 64  # showers at a time: a block of the full grid is 17 MB
SPECTRUM_EDGES = np.logspace(-5, 1, 61)  # GeV of a cell: ten bins a decade from 0.01 MeV to 10 GeV
EMPTY_ANGLE = 100.0  # rad, of an empty shower, as the authors have it
LEAST_GEV = 1e-6 / CELL_UNITS  # a layer or a shower counts as empty up to this
# Least squared distance in cells, which avoids a division by 0 at the barycenter.
LEAST_SQUARE = 1e-7
THRESHOLD_GEV = 0.5e-6 / 0.033  # 15.15 keV: 0.5 keV in the silicon over its sampling fraction
SMALLEST_MEV = 1e-8  # energy of an empty layer, for logarithms
ROUNDING = 1e-12  # share of ⟨p²⟩ below which a variance counts as 0


def values_of(cells_gev: NDArray[Any]) -> NDArray[np.float32]:
    """Energies of cells in GeV, at least 0 → values, of the same shape."""
    values = np.asarray(cells_gev, np.float32) * np.float32(CELL_UNITS)
    filled = values != 0.0  # 98 of 100 cells are empty, and the power dominates the time
    values[filled] **= np.float32(POWER)
    return values


def cells_of(values: NDArray[Any]) -> NDArray[np.float32]:
    """Values → energies of cells in GeV, of the same shape; negative values count as 0."""
    positive = np.maximum(values, 0.0).astype(np.float32)
    return np.power(positive, np.float32(1.0 / POWER)) / np.float32(CELL_UNITS)


def rows_of(
    cells_gev: NDArray[Any], energies_gev: NDArray[Any], angles: NDArray[Any] | None = None
) -> dict[str, NDArray[Any]]:
    """Cells (N, X, Y, Z) and energies (N,), both in GeV → rows by field, as stored.

    `angles`: (N,), rad; without them they are measured on the cells.
    """
    measured = measured_angle(cells_gev) if angles is None else angles
    return {**rows_without_angle(cells_gev, energies_gev), ANGLE: measured.astype(np.float32)}


def rows_without_angle(
    cells_gev: NDArray[Any], energies_gev: NDArray[Any]
) -> dict[str, NDArray[Any]]:
    """As `rows_of`, for showers of one angle."""
    return {
        SHOWERS: values_of(cells_gev)[..., None].astype(np.float16),
        ENERGY: energies_gev.astype(np.float32),
        DEPOSIT: CELL_UNITS * cells_gev.sum(axis=(1, 2, 3), dtype=np.float32),
    }


def measured_angle(cells_gev: NDArray[Any]) -> NDArray[np.float32]:
    """Cells in GeV, at least 0, (N, X, Y, Z) or (N, X, Y, Z, 1) → angles (N,), rad; 100 for an
    empty shower.

    The authors' `mtheta` (github.com/svalleco/3Dgan, branch Anglegan), the slope of the line
    through the barycenters of the layers. With x, y and z at the centers of the cells, (x_c, y_c,
    z_c) the barycenter of the shower and (x_z, y_z) that of layer z:

        m_z = ± (y_z - y_c) / √((x_z - x_c)² + (z - z_c)²),  minus above the barycenter (z < z_c)
        angle = Σ_z z (π/2 - arctan m_z) / Σ_z z,  over the layers that hold energy

    It counts in cells, whose depth is that of a layer but not their width, so it is not the angle
    of the particle: 60°, 90° and 120° are measured as about 62°, 90° and 118°.
    """
    images = cells_gev[..., 0] if cells_gev.ndim == 5 else cells_gev
    layers = images.sum(axis=(1, 2), dtype=np.float64)  # (N, Z)
    x = _barycenters(images.sum(axis=2, dtype=np.float64), layers)  # (N, Z), of each layer
    y = _barycenters(images.sum(axis=1, dtype=np.float64), layers)
    total = layers.sum(axis=1, keepdims=True)  # (N, 1)
    z = np.arange(layers.shape[1]) + 0.5  # (Z,)
    x_center, y_center, z_center = (
        divided((place * layers).sum(axis=1, keepdims=True), total) for place in (x, y, z)
    )  # (N, 1) each
    distance = np.sqrt(np.maximum((x - x_center) ** 2 + (z - z_center) ** 2, LEAST_SQUARE))
    slope = np.where(z < z_center, -1.0, 1.0) * (y - y_center) / distance  # m_z, (N, Z)
    weight = np.where(layers > LEAST_GEV, z, 0.0)
    angles = divided((weight * (np.pi / 2.0 - np.arctan(slope))).sum(axis=1), weight.sum(axis=1))
    return np.where(total[:, 0] > LEAST_GEV, angles, EMPTY_ANGLE).astype(np.float32)


def _barycenters(columns: Array, layers: Array) -> Array:
    """Sums along one lateral axis (N, X, Z) → the barycenter of each layer on the other, in cells
    (N, Z); 0 where it is empty.
    """
    places = np.arange(columns.shape[1]) + 0.5
    return divided(np.einsum("nxz,x->nz", columns, places), layers)


def divided(numerator: Array, denominator: Array) -> Array:
    """The quotient; 0 where the denominator is 0."""
    filled = denominator > 0.0
    return np.where(filled, numerator / np.where(filled, denominator, 1.0), 0.0)


# ---- features ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Features:
    """N showers, row by row, on a grid (X, Y, Z).

    `energy_gev`: of the incident particle (N,). `visible_gev`: sum of the cells (N,). `along_x`,
    `along_y`, `along_z`: sums over the other two axes (N, X), (N, Y), (N, Z), GeV. `moments`: (N, 3
    axes, 3 orders), cells to the power of the order. `hits`: cells above HIT_GEV (N,). `angle`:
    measured, rad (N,); NaN on grids without angles. `spectrum`: cells in each bin of SPECTRUM_EDGES
    (N, bins). `centers`, `widths`: of each layer, across (N, Z, 2), cells; 0 for an empty layer.
    `peak`: numbers of the brightest cell along the axes, from 1 (N, 3). `challenge`: of
    `challenge_features` (N, 2 + 8 Z). `belief`, `read_gev`: the discriminator's probability that
    they are simulated, and the incident energy that it reads (N,); NaN without a discriminator.
    """

    energy_gev: Array
    visible_gev: Array
    along_x: Array
    along_y: Array
    along_z: Array
    moments: Array
    hits: Array
    angle: Array
    spectrum: Array
    centers: Array
    widths: Array
    peak: Array
    challenge: Array
    belief: Array
    read_gev: Array

    def __len__(self) -> int:
        return len(self.energy_gev)

    @property
    def sampling_fraction(self) -> Array:
        """Visible over incident energy (N,): about 0.02 for the authors' calorimeter."""
        return self.visible_gev / self.energy_gev

    @property
    def profiles(self) -> dict[str, Array]:
        """The shower shapes by axis."""
        return {"x": self.along_x, "y": self.along_y, "z": self.along_z}

    @property
    def thirds(self) -> Array:
        """Share of the visible energy in the first, middle and last third of the layers (N, 3): 8,
        8 and 9 of 25.
        """
        layers = self.along_z.shape[1]
        ends = (0, layers // 3, 2 * layers // 3, layers)
        sums = [self.along_z[:, a:b].sum(axis=1) for a, b in pairwise(ends)]
        return divided(np.stack(sums, axis=1), self.visible_gev[:, np.newaxis])

    def select(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> Features:
        """The features of these showers."""
        return replace(
            self, **{field.name: getattr(self, field.name)[rows] for field in fields(self)}
        )


def features_of(
    cells_gev: NDArray[np.floating],
    energy_gev: NDArray[np.floating],
    periodic: tuple[int, ...] = (),
    has_angle: bool = True,
) -> Features:
    """Features of showers (N, X, Y, Z) in GeV, all at least 0.

    `energy_gev`: of the incident particles (N,), above 0.

    Raises:
        ValueError: not one energy for each shower.
    """
    if len(energy_gev) != len(cells_gev) or not len(cells_gev):
        raise ValueError(
            f"there are {len(cells_gev)} showers but {len(energy_gev)} energies: give one for each."
        )
    energy = np.asarray(energy_gev, np.float64)
    blocks = [
        _of_block(
            cells_gev[begin : begin + BLOCK], energy[begin : begin + BLOCK], periodic, has_angle
        )
        for begin in range(0, len(cells_gev), BLOCK)
    ]
    names = [field.name for field in fields(Features)]
    return Features(
        **{name: np.concatenate([getattr(block, name) for block in blocks]) for name in names}
    )


def _of_block(
    cells: NDArray[np.floating], energy: Array, periodic: tuple[int, ...], has_angle: bool
) -> Features:
    front = cells.sum(axis=3, dtype=np.float64)  # (N, X, Y)
    layers = cells.sum(axis=(1, 2), dtype=np.float64)  # (N, Z)
    visible = layers.sum(axis=1)
    across = places_across(cells.shape[1:3], periodic)  # (2, X, Y)
    depth = np.arange(layers.shape[1]) + 0.5
    spreads = zip(*(spread(cells, layers, places) for places in across), strict=True)
    centers, widths = (np.stack(numbers, axis=2) for numbers in spreads)
    moments = [
        _moments(front.reshape(len(front), -1), place.reshape(-1), visible) for place in across
    ]
    moments.append(_moments(layers, depth, visible))
    brightest = cells.reshape(len(cells), -1).argmax(axis=1)  # the first of equally bright cells
    unknown = np.full(len(cells), np.nan)
    return Features(
        energy_gev=energy,
        visible_gev=visible,
        along_x=front.sum(axis=2),
        along_y=front.sum(axis=1),
        along_z=layers,
        moments=np.stack(moments, axis=1),
        hits=(cells > HIT_GEV).sum(axis=(1, 2, 3)).astype(np.float64),
        angle=measured_angle(cells).astype(np.float64) if has_angle else unknown,
        spectrum=_spectrum(cells),
        centers=centers,
        widths=widths,
        peak=np.stack(np.unravel_index(brightest, cells.shape[1:]), axis=1) + 1.0,
        challenge=challenge_features(cells, energy, across, around_beam=0 in periodic),
        belief=unknown,
        read_gev=unknown,
    )


def places_across(shape: tuple[int, ...], periodic: tuple[int, ...]) -> Array:
    """(2, X, Y): the place of each column of cells on two perpendicular axes across, in cells."""
    first, second = np.meshgrid(np.arange(shape[0]) + 0.5, np.arange(shape[1]) + 0.5, indexing="ij")
    if 0 not in periodic:
        return np.stack([first, second])
    alpha = 2.0 * np.pi * first / shape[0]
    return np.stack([second * np.cos(alpha), second * np.sin(alpha)])


def _moments(weights: Array, places: Array, total: Array) -> Array:
    """(N, 3): the mean place m₁ = Σ w p / Σ w, and Σ w (p - m₁)^k / Σ w for k = 2, 3; 0 for an
    empty shower. weights: (N, P).
    """
    mean = divided(weights @ places, total)
    offsets = places[np.newaxis] - mean[:, np.newaxis]  # (N, P)
    higher = [divided((weights * offsets**order).sum(axis=1), total) for order in ORDERS[1:]]
    return np.stack([mean, *higher], axis=1)


def _spectrum(cells: NDArray[np.floating]) -> Array:
    """(N, bins): the number of cells in each bin of SPECTRUM_EDGES; none below or above."""
    bins = len(SPECTRUM_EDGES) - 1
    rows, *_ = places = np.nonzero(cells >= SPECTRUM_EDGES[0])
    number = np.searchsorted(SPECTRUM_EDGES, cells[places], side="right") - 1
    inside = number < bins
    counts = np.bincount(rows[inside] * bins + number[inside], minlength=len(cells) * bins)
    return counts.reshape(len(cells), bins).astype(np.float64)


def high_level(features: Features) -> Array:
    """(N, 1 + 5 Z), the layer features, for the scores `fpd`, `kpd`, `separation` and `auc_high`:
    log10 of the incident energy and of that of each layer (MeV), its center and width on both axes.

    The evaluation of the CaloChallenge until November 2023; today it uses `Features.challenge`.
    """
    count = len(features)
    parts = (
        np.log10(features.energy_gev * MEV_PER_GEV)[:, np.newaxis],
        log_mev(features.along_z),
        features.centers.reshape(count, -1),
        features.widths.reshape(count, -1),
    )
    return np.concatenate(parts, axis=1)


def correlated(features: Features) -> Array:
    """(N, 12) as in the authors' correlation matrix: first and second moments on three axes,
    visible and incident energy, hits, and the shares of the thirds of the layers.
    """
    moments = np.concatenate([features.moments[:, :, 0], features.moments[:, :, 1]], axis=1)
    single = np.stack([features.visible_gev, features.energy_gev, features.hits], axis=1)
    return np.concatenate([moments, single, features.thirds], axis=1)


def challenge_features(
    cells_gev: NDArray[np.floating], energy_gev: Array, places: Array, around_beam: bool
) -> Array:
    """(N, 2 + 8 Z), the features of the CaloChallenge, 362 on data set 2 (arXiv:2410.21611;
    evaluate.py and HighLevelFeatures.py of github.com/CaloChallenge/homepage since November 2023):
    log10 of the incident energy and of each layer's, centers and widths of the layers on both axes,
    log10 of the total energy, sparsity of the layers, centers and widths in r.

    Cells (N, X, Y, Z); NaN, negative cells and those below the readout threshold count as 0.
    `places`: of the columns of cells on both axes across (2, X, Y). r is measured from the beam, or
    from the middle of a grid without one. Energies in MeV. Two differences change neither FPD nor
    KPD: lengths are in cells, there in mm / 100 (each feature is divided by its largest value), and
    angles begin at 0, there at -π (which inverts both signs of every center).
    """
    cells = np.where(cells_gev >= THRESHOLD_GEV, cells_gev, 0.0).astype(np.float64)
    layers = cells.sum(axis=(1, 2))
    middle = 0.0 if around_beam else np.mean(places, axis=(1, 2), keepdims=True)
    radius = np.sqrt(((places - middle) ** 2).sum(axis=0))
    (x, x_width), (y, y_width), (r, r_width) = (
        spread(cells, layers, axis) for axis in (*places, radius)
    )
    total = layers.sum(axis=1, keepdims=True)
    sparsity = 1.0 - (cells > 0.0).mean(axis=(1, 2))
    energy = np.log10(energy_gev * MEV_PER_GEV)[:, np.newaxis]
    across = (x, y, x_width, y_width)
    return np.concatenate(
        [energy, log_mev(layers), *across, log_mev(total), sparsity, r, r_width], axis=1
    )


def log_mev(gev: Array) -> Array:
    """log10 of energies in MeV; -8 for 0."""
    return np.asarray(np.log10(gev * MEV_PER_GEV + SMALLEST_MEV))


def spread(cells: NDArray[np.floating], layers: Array, places: Array) -> tuple[Array, Array]:
    """Center ⟨p⟩ and width √(⟨p²⟩ - ⟨p⟩²) of each layer, both (N, Z); 0 for an empty one.

    Cells (N, X, Y, Z), `places` (X, Y). A width of rounding errors alone, as of a layer with one
    cell, is 0: distances would divide by a largest width of 10⁻⁸.
    """
    first, second = (
        divided(np.einsum("nxyz,xy->nz", cells, power, dtype=np.float64, optimize=True), layers)
        for power in (places, places**2)
    )
    variance = second - first**2
    return first, np.sqrt(np.where(variance > ROUNDING * second, variance, 0.0))
