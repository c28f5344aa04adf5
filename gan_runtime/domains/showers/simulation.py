"""Showers of electrons, simulated without Geant4: random profiles of each shower, then spots of
energy (Grindhammer and Peters 2000, arXiv:hep-ex/0001020, implemented from the paper's equations;
constants as in Geant4's gflash).

    # (N, 51, 51, 25), GeV in the silicon
    cells = simulate(energies_gev, angles, np.random.default_rng(0))

Not from the paper: a sensor measures the density of the shower (`Detector.density_seen`); the
energy of a spot is random, of two or three particles in 0.5 mm of silicon, so cells have no steps
of whole spots; an inclined shower moves sideways from layer to layer; the window is centered on the
barycenter up to half a cell. Not simulated: magnetic field, back-scattering, threshold and noise of
the electronics.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.errors import DatasetError
from gan_runtime.data.contract import Progress
from gan_runtime.data.prepared import Stored
from gan_runtime.data.sharded import RowWriter
from gan_runtime.data.summary import Summary
from gan_runtime.domains.showers.detector import (
    CLIC,
    Detector,
    Numbers,
    Widths,
    drawn_profiles,
    mean_profiles,
    shower_ages,
    widths,
)
from gan_runtime.domains.showers.entry import MERGED, shower_fields
from gan_runtime.domains.showers.features import measured_angle, rows_of
from gan_runtime.domains.showers.file_checks import ShowerTally
from gan_runtime.domains.showers.preparation_options import ShowerOptions, held_out

# Of the energy in a thin layer; the mean of all showers then agrees with CERN's fit, 2.0% of 100
# GeV and 1.8% of 500 GeV.
SAMPLING_FRACTION = 0.0250
# Of the energy sum, c in σ / E = c / √E[GeV]; determines the number of spots of a shower, and the
# fluctuations of each layer.
SAMPLING_RESOLUTION = 0.17
PARTICLES_A_SPOT = 2
# Each batch of showers has a separate random stream, so the first showers do not depend on how many
# are simulated.
AT_ONCE = 32
EQUAL_AT_ONCE = 25  # showers of one energy and angle
INCIDENCES, TRIED = (45.0, 135.0), 7  # degrees, as in data sets of simulated showers; angles
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class DetectorGrid:
    """Cells of a shower. `merged`: cells a side that are summed to one, 1 or 3."""

    detector: Detector = CLIC
    merged: int = 1

    @property
    def shape(self) -> tuple[int, int, int]:
        """(X, Y, Z)."""
        side = self.detector.lateral_cells // self.merged
        return side, side, self.detector.layers


FULL = DetectorGrid()
TINY = DetectorGrid(merged=MERGED["tiny"])
GRIDS = {"full": FULL, "tiny": TINY}


@dataclass(frozen=True)
class ShowerLayers:
    """Layers of showers, all (N, Z): `energy_gev`: visible energy; `spots`: their number;
    `center_cells`: the axis on y, from the barycenter.
    """

    energy_gev: Numbers
    spots: NDArray[np.int64]
    center_cells: Numbers
    widths: Widths


def simulate(
    energies_gev: Numbers, angles: Numbers, random: np.random.Generator, grid: DetectorGrid = FULL
) -> Floats:
    """Energies (N,), above 0.1 GeV, and angles to the layers (N,), rad, π/2 is perpendicular →
    cells (N, X, Y, Z), GeV. About 1 ms and 0.5 MB each.
    """
    layers = _layers(energies_gev, angles, random, grid.detector)
    offsets = random.random((2, len(angles))) - 0.5  # of the barycenter in its cell
    x_cells, y_cells, energy_gev = _spots(layers, np.sin(angles), random, grid.detector)
    middle = grid.detector.lateral_cells / 2.0
    showers = np.repeat(np.arange(len(angles)), layers.spots.sum(axis=1))
    x = np.floor(x_cells + (middle + offsets[0])[showers]).astype(np.int64)
    y = np.floor(y_cells + (middle + offsets[1])[showers]).astype(np.int64)
    return _image(x, y, _rows(layers.spots), energy_gev, len(angles), grid)


def incidence(
    energy_gev: float, measured: float, random: np.random.Generator, grid: DetectorGrid
) -> float:
    """The angle of incidence at which showers measure `measured` on average, both rad, interpolated
    linearly. With cells three times as wide as deep an image leans a third as much.

    Raises:
        DatasetError: no incidence from 45° to 135° gives it.
    """
    angles = np.radians(np.linspace(*INCIDENCES, TRIED))
    means = [
        measured_angle(simulate_equal(energy_gev, angle, EQUAL_AT_ONCE, random, grid)).mean()
        for angle in angles
    ]
    if not means[0] <= measured <= means[-1]:
        low, high = (math.degrees(means[place]) for place in (0, -1))
        raise DatasetError(
            f"angle_deg is {math.degrees(measured):.4g}, but showers on this grid measure {low:.0f}"
            f" to {high:.0f} at {energy_gev:.4g} GeV: use an angle in this range."
        )
    return float(np.interp(measured, means, angles))


def simulate_equal(
    energy_gev: float, angle: float, count: int, random: np.random.Generator, grid: DetectorGrid
) -> NDArray[np.float32]:
    """Showers of one energy and angle of incidence (rad): cells (count, X, Y, Z) in GeV."""
    energies, angles = (np.full(EQUAL_AT_ONCE, value) for value in (energy_gev, angle))
    parts = [simulate(energies, angles, random, grid) for _ in range(-(-count // EQUAL_AT_ONCE))]
    return np.concatenate(parts)[:count]


def _layers(
    energies_gev: Numbers, angles: Numbers, random: np.random.Generator, detector: Detector
) -> ShowerLayers:
    """Depths along the axis are longer by 1 / sin θ."""
    medium, mean = detector.medium, mean_profiles(energies_gev, detector.medium)
    profiles = drawn_profiles(energies_gev, medium, random)
    edges = detector.edges_x0 / np.sin(angles)[:, None]  # (N, Z + 1)
    deposited = energies_gev[:, None] * profiles.fractions(edges)
    # Of a layer with 1 GeV: dE → Γ(dE / c², c²) has the mean dE and the variance c² dE.
    variance = SAMPLING_RESOLUTION**2
    sampled = random.gamma(deposited / variance, variance)
    visible = SAMPLING_FRACTION * detector.density_seen * sampled
    number = 10.3 / SAMPLING_RESOLUTION * energies_gev**0.959  # of spots in a shower
    shares = profiles.of_spots(medium).fractions(edges)
    spots = np.floor(number[:, None] * shares + random.random(shares.shape)).astype(np.int64)
    ages = shower_ages((edges[:, :-1] + edges[:, 1:]) / 2.0, profiles, mean)
    return ShowerLayers(
        energy_gev=visible,
        spots=np.maximum(spots, 1),
        center_cells=_axis(visible, angles, detector),
        widths=widths(energies_gev, ages, medium),
    )


def _axis(visible: Numbers, angles: Numbers, detector: Detector) -> Numbers:
    """The axis in each sensor, y = z / tan θ relative to the barycenter, in cells: (N, Z)."""
    crossing = detector.sensors_mm / np.tan(angles)[:, None] / detector.cell_mm
    total = np.maximum(visible.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    return crossing - (visible * crossing).sum(axis=1, keepdims=True) / total


def _spots(
    layers: ShowerLayers, sines: Numbers, random: np.random.Generator, detector: Detector
) -> tuple[Floats, Floats, Floats]:
    """x and y from the barycenter, in cells, and energy in GeV of all spots, layer by layer, shower
    by shower: (S,) each.

    Core and tail: r = R √(u / (1 - u)), φ uniform. The section of an inclined shower with a layer
    is longer by 1 / sin θ along y.
    """
    cores = random.binomial(layers.spots, layers.widths.core_share)
    parts = np.stack([cores, layers.spots - cores], axis=-1)  # (N, Z, 2)
    moliere_cells = detector.medium.moliere_mm / detector.cell_mm
    radii = moliere_cells * np.stack([layers.widths.core, layers.widths.tail], axis=-1)
    count = int(layers.spots.sum())
    even = random.random(count, dtype=np.float32)
    radius = np.repeat(radii.astype(np.float32).ravel(), parts.ravel()) * np.sqrt(
        even / (1.0 - even)
    )
    azimuth = random.random(count, dtype=np.float32) * np.float32(2.0 * np.pi)
    rows = layers.spots.ravel()
    stretch = np.repeat((1.0 / sines).astype(np.float32), layers.spots.sum(axis=1))
    y = radius * np.sin(azimuth) * stretch + np.repeat(
        layers.center_cells.astype(np.float32).ravel(), rows
    )
    return radius * np.cos(azimuth), y, _energies(layers, random)


def _energies(layers: ShowerLayers, random: np.random.Generator) -> Floats:
    """The energies of all spots (S,), GeV: each of a few particles, scaled to the energy of its
    layer.
    """
    rows = layers.spots.ravel()
    weights = random.standard_exponential(
        (PARTICLES_A_SPOT, int(rows.sum())), dtype=np.float32
    ).sum(axis=0)
    begins = np.cumsum(rows) - rows
    sums = np.add.reduceat(weights, begins)
    return weights * np.repeat((layers.energy_gev.ravel() / sums).astype(np.float32), rows)


def _rows(spots: NDArray[np.int64]) -> NDArray[np.int64]:
    """(N, Z) numbers of spots → the layer of each, numbered over all showers: (S,)."""
    return np.repeat(np.arange(spots.size), spots.ravel())


def _image(
    x: NDArray[np.int64],
    y: NDArray[np.int64],
    rows: NDArray[np.int64],
    energy_gev: Floats,
    count: int,
    grid: DetectorGrid,
) -> Floats:
    """Sums the spots inside the window to cells (N, X, Y, Z)."""
    side, _, depth = grid.shape
    inside = (
        (x >= 0) & (x < grid.detector.lateral_cells) & (y >= 0) & (y < grid.detector.lateral_cells)
    )
    shower, layer = np.divmod(rows, depth)
    cell = ((shower * side + x // grid.merged) * side + y // grid.merged) * depth + layer
    cells = np.bincount(cell[inside], energy_gev[inside], minlength=count * side * side * depth)
    return cells.astype(np.float32).reshape(count, *grid.shape)


# ---- preparation ---------------------------------------------------------------------------------


def prepare(_source: None, options: ShowerOptions, folder: Path, progress: Progress) -> Stored:
    """Writes the showers into the existing, empty `folder`.

    Raises HomeError: the disk has too little space.
    """
    fields, tally = shower_fields((*GRIDS[options.grid].shape, 1)), ShowerTally()
    with RowWriter(
        folder, fields, options.events, f"a data set of {options.events:,} showers"
    ) as writer:
        for begin in range(0, options.events, AT_ONCE):
            progress(begin, options.events, f"Simulating {begin:,} of {options.events:,} showers")
            cells_gev, energies = simulated(
                options, begin // AT_ONCE, min(AT_ONCE, options.events - begin)
            )
            tally.add(cells_gev, energies)
            writer.append(rows_of(cells_gev, energies))
    summary = Summary(
        held_out=held_out(options), quantities=tally.quantities(), curve=tally.profile()
    )
    return Stored(fields, writer.shards, summary)


def simulated(options: ShowerOptions, part: int, count: int) -> tuple[Floats, Numbers]:
    """`count` showers from number 32 · part on: cells (count, X, Y, Z) and incident energies
    (count,), both in GeV.
    """
    random = np.random.default_rng((options.seed, part))
    energies = random.uniform(options.energy_low, options.energy_high, AT_ONCE)
    angles = np.radians(random.uniform(options.angle_low, options.angle_high, AT_ONCE))
    cells_gev = simulate(energies, angles, random, GRIDS[options.grid])
    return cells_gev[:count], energies[:count]
