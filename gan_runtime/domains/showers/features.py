"""What is measured on each shower: the quantities that a detector physicist looks at, beside those
of the CaloChallenge.

Energies in GeV, places in cells (the center of the first cell is 0.5). On a grid around the beam,
whose first axis closes on itself, places across are x = r cos α, y = r sin α, with r in cells.
Sources: github.com/svalleco/3Dgan (analysis), sections "moments", "hits", "shower shapes";
CaloChallenge, arXiv:2410.21611, section 5 (centers of energy, widths).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from gan_runtime.domains.showers.cells import divided, measured_angle
from gan_runtime.domains.showers.detector import MEV_PER_GEV
from gan_runtime.domains.showers.distances import challenge_features, log_mev, spread

HIT_GEV = 2e-4  # a cell that counts as hit (authors: hits above 0.2 MeV)
ORDERS = (1, 2, 3)  # of moments: mean, variance, third central moment
BLOCK = 64  # showers at a time: a block of the full grid is 17 MB
SPECTRUM_EDGES = np.logspace(-5, 1, 61)  # GeV of a cell: ten bins a decade from 0.01 MeV to 10 GeV

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Features:
    """N showers, row by row, on a grid (X, Y, Z).

    `energy_gev`: of the incident particle (N,). `visible_gev`: sum of the cells (N,). `along_x`,
    `along_y`, `along_z`: sums over the other two axes (N, X), (N, Y), (N, Z), GeV. `moments`: (N, 3
    axes, 3 orders), cells to the power of the order. `hits`: cells above HIT_GEV (N,). `angle`:
    measured on the image, rad (N,); NaN where the grid knows none. `spectrum`: cells in each bin of
    SPECTRUM_EDGES (N, bins). `centers`, `widths`: of each layer, across (N, Z, 2), cells; 0 for an
    empty layer. `peak`: numbers of the brightest cell along the axes, from 1 (N, 3). `challenge`:
    see challenge_features.py (N, 2 + 8 Z). `belief`, `read_gev`: what a judging network reads, that
    they are real (0 to 1) and their incident energy (N,); NaN where none was asked.
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
        """Visible energy over incident energy (N,): about 0.02 for the calorimeter of the
        authors.
        """
        return self.visible_gev / self.energy_gev

    @property
    def profiles(self) -> dict[str, Array]:
        """The shower shapes by axis."""
        return {"x": self.along_x, "y": self.along_y, "z": self.along_z}

    @property
    def thirds(self) -> Array:
        """Share of the visible energy in the first, middle and last third of the layers (N,
        3): 8, 8 and 9 of 25.
        """
        layers = self.along_z.shape[1]
        parts = (self.along_z[:, : layers // 3], self.along_z[:, layers // 3 : 2 * layers // 3])
        last = self.along_z[:, 2 * layers // 3 :]
        sums = np.stack([part.sum(axis=1) for part in (*parts, last)], axis=1)
        return divided(sums, self.visible_gev[:, np.newaxis])

    def chosen(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> Features:
        """Some of the showers."""
        return replace(
            self, **{field.name: getattr(self, field.name)[rows] for field in fields(self)}
        )


def measured(
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
    centers, widths = _in_layers(cells, layers, across)
    moments = [
        _moments(front.reshape(len(front), -1), place.reshape(-1), visible) for place in across
    ]
    moments.append(_moments(layers, depth, visible))
    return Features(
        energy_gev=energy,
        visible_gev=visible,
        along_x=front.sum(axis=2),
        along_y=front.sum(axis=1),
        along_z=layers,
        moments=np.stack(moments, axis=1),
        hits=(cells > HIT_GEV).sum(axis=(1, 2, 3)).astype(np.float64),
        angle=(
            measured_angle(cells).astype(np.float64) if has_angle else np.full(len(cells), np.nan)
        ),
        spectrum=_spectrum(cells),
        centers=centers,
        widths=widths,
        peak=_brightest(cells),
        challenge=challenge_features(cells, energy, across, around_beam=0 in periodic),
        belief=np.full(len(cells), np.nan),
        read_gev=np.full(len(cells), np.nan),
    )


def _brightest(cells: NDArray[np.floating]) -> Array:
    """(N, 3): of several that are equally bright the first one, so 1, 1, 1 for an empty shower."""
    flat = cells.reshape(len(cells), -1).argmax(axis=1)
    return np.stack(np.unravel_index(flat, cells.shape[1:]), axis=1) + 1.0


def places_across(shape: tuple[int, ...], periodic: tuple[int, ...]) -> Array:
    """(2, X, Y): where each column of cells stands, on two axes at right angles to the depth,
    in cells.
    """
    first, second = np.meshgrid(np.arange(shape[0]) + 0.5, np.arange(shape[1]) + 0.5, indexing="ij")
    if 0 not in periodic:
        return np.stack([first, second])
    alpha = 2.0 * np.pi * first / shape[0]
    return np.stack([second * np.cos(alpha), second * np.sin(alpha)])


def _moments(weights: Array, places: Array, total: Array) -> Array:
    """(N, 3): the mean place m₁ = Σ w p / Σ w, and Σ w (p - m₁)^k / Σ w for k = 2, 3; 0 for
    an empty shower. weights: (N, P).
    """
    mean = divided(weights @ places, total)
    offsets = places[np.newaxis] - mean[:, np.newaxis]  # (N, P)
    higher = [divided((weights * offsets**order).sum(axis=1), total) for order in ORDERS[1:]]
    return np.stack([mean, *higher], axis=1)


def _in_layers(cells: NDArray[np.floating], layers: Array, across: Array) -> tuple[Array, Array]:
    """Centers and widths of each layer on both axes across: twice (N, Z, 2)."""
    on_axes = [spread(cells, layers, places) for places in across]
    centers, widths = (np.stack(numbers, axis=2) for numbers in zip(*on_axes, strict=True))
    return centers, widths


def _spectrum(cells: NDArray[np.floating]) -> Array:
    """(N, bins): how many cells of each shower lie in each bin of SPECTRUM_EDGES; fainter and
    brighter ones are left out.
    """
    bins = len(SPECTRUM_EDGES) - 1
    rows, *_ = places = np.nonzero(cells >= SPECTRUM_EDGES[0])
    number = np.searchsorted(SPECTRUM_EDGES, cells[places], side="right") - 1
    inside = number < bins
    counts = np.bincount(rows[inside] * bins + number[inside], minlength=len(cells) * bins)
    return counts.reshape(len(cells), bins).astype(np.float64)


def high_level(features: Features) -> Array:
    """(N, 1 + 5 Z), the layer features, for the scores `fpd`, `kpd`, `separation` and `auc_high`:
    log10 of the incident energy, log10 of the energy of each layer, and its center and width on
    both axes. Energies in MeV. The evaluation of the CaloChallenge had these until November 2023;
    its set of today is `Features.challenge`.
    """
    count = len(features)
    layers = log_mev(features.along_z)
    parts = (
        np.log10(features.energy_gev * MEV_PER_GEV)[:, np.newaxis],
        layers,
        features.centers.reshape(count, -1),
    )
    return np.concatenate([*parts, features.widths.reshape(count, -1)], axis=1)


def correlated(features: Features) -> Array:
    """(N, 12) as in the authors' correlation matrix: first and second moments on three axes,
    visible and incident energy, hits, and the shares of the thirds of the layers.
    """
    moments = np.concatenate([features.moments[:, :, 0], features.moments[:, :, 1]], axis=1)
    single = np.stack([features.visible_gev, features.energy_gev, features.hits], axis=1)
    return np.concatenate([moments, single, features.thirds], axis=1)
