"""The units of a file of showers: those that a person gives, or the only ones that make showers of
a known calorimeter out of its numbers.

Energies: their range is that of the set. Cells: they sum up to the known share of the energy. Where
both leave a choice, the depth of the showers decides: it grows with the logarithm of the energy in
GeV. Where that leaves one too, the person is asked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.errors import DatasetError
from gan_runtime.domains.showers.detector import (
    CLIC,
    SILICON,
    Material,
    Medium,
    Numbers,
    mean_profiles,
)
from gan_runtime.domains.showers.preparation_options import AUTO, UNITS_GEV, ShowerFileOptions

RANGE = 2.0  # so many times below and above the energies of the set
SHARE = 3.0  # the same of the share that is seen; units are at least 20 times apart


@dataclass(frozen=True)
class Units:
    """`energies`, `cells`: names of units.

    `share`: what the cells hold of the energies then. `reason`: a sentence about both.
    """

    energies: str
    cells: str
    share: float
    reason: str

    @property
    def energy_gev(self) -> float:
        """One unit of the energies."""
        return UNITS_GEV[self.energies]

    @property
    def cell_gev(self) -> float:
        """One unit of the cells."""
        return UNITS_GEV[self.cells]


@dataclass(frozen=True)
class FileSample:
    """What is looked at.

    `name`: of the file; `lowest`, `highest`: of all energies of all files; `cells` (N, X, Y, Z) and
    `energies` (N,): of the first rows. All in the units of the file.
    """

    name: str
    lowest: float
    highest: float
    cells: NDArray[np.float32]
    energies: NDArray[np.float32]

    def share(self, energies: str, cells: str) -> float:
        """What the cells of a shower sum up to, over its energy, in these units: the median
        of those that are not empty.
        """
        sums = self.cells.sum(axis=(1, 2, 3), dtype=np.float64) * UNITS_GEV[cells]
        shares = (sums / (self.energies * UNITS_GEV[energies]))[sums != 0.0]
        return float(np.median(shares)) if len(shares) else 0.0


def units(sample: FileSample, options: ShowerFileOptions, known: Readout) -> Units:
    """Raises DatasetError: none fits, or several do."""
    if not sample.lowest > 0.0:
        raise DatasetError(
            f"{sample.name}: its lowest incident energy is {sample.lowest:g}, but it has to be"
            " above 0."
        )
    of_energies = _of_energies(sample, options, known)
    pairs = [
        (energy, cell)
        for energy in of_energies
        for cell in _of_cells(sample, options, known, energy)
    ]
    if not pairs:
        raise _no_share(sample, of_energies[0], known)
    if options.energy_unit != AUTO:
        why = "as you say"
    elif len(pairs) > 1:
        why = "as the showers are that deep"
        pairs = [pair for pair in pairs if _is_as_deep(sample, pair[0], known)]
    elif len(of_energies) > 1:
        why = "by the sum of the cells"
    else:
        why = f"the range of {known.name}"
    if len(pairs) != 1:
        raise _unclear(sample, known)
    energy, cell = pairs[0]
    share = sample.share(energy, cell)
    return Units(energy, cell, share, _reason(sample, options, known, energy, cell, share, why))


def _of_energies(sample: FileSample, options: ShowerFileOptions, known: Readout) -> list[str]:
    if options.energy_unit != AUTO:
        return [options.energy_unit]
    fitting = [
        unit
        for unit in ("MeV", "GeV")
        if known.lowest_gev / RANGE <= sample.lowest * UNITS_GEV[unit]
        and sample.highest * UNITS_GEV[unit] <= known.highest_gev * RANGE
    ]
    if fitting:
        return fitting
    raise DatasetError(
        f"{sample.name}: its incident energies are from {sample.lowest:,.6g} to"
        f" {sample.highest:,.6g}, which is neither in MeV nor in GeV the range of {known.name},"
        f" {known.lowest_gev:,.0f} to {known.highest_gev:,.0f} GeV: are units mixed? Say which with"
        " energy_unit."
    )


def _of_cells(
    sample: FileSample, options: ShowerFileOptions, known: Readout, energy: str
) -> list[str]:
    if options.cell_unit != AUTO:
        return [options.cell_unit]
    share = known.sampling_fraction
    return [
        unit for unit in UNITS_GEV if share / SHARE < sample.share(energy, unit) < share * SHARE
    ]


def _is_as_deep(sample: FileSample, energy: str, known: Readout) -> bool:
    gev = sample.energies * UNITS_GEV[energy]
    return known.distance(np.maximum(sample.cells, 0.0), gev) <= limit(len(gev))


def _no_share(sample: FileSample, energy: str, known: Readout) -> DatasetError:
    shares = ", ".join(f"{sample.share(energy, unit):.2g} in {unit}" for unit in UNITS_GEV)
    return DatasetError(
        f"{sample.name}: the cells of a shower sum up to {shares} of the incident energy in"
        f" {energy}, but to about {known.sampling_fraction:g} in the sets of {known.name}: convert"
        " them, or say their unit with cell_unit."
    )


def _unclear(sample: FileSample, known: Readout) -> DatasetError:
    return DatasetError(
        f"{sample.name}: its incident energies, from {sample.lowest:,.6g} to {sample.highest:,.6g},"
        f" may be in MeV or in GeV: either is in the range of {known.name}, and the showers are as"
        " deep as those of neither or of both. Say which with energy_unit."
    )


def _reason(
    sample: FileSample,
    options: ShowerFileOptions,
    known: Readout,
    energy: str,
    cell: str,
    share: float,
    why: str,
) -> str:
    """`why`: the energies are in that unit."""
    lowest, highest = (value * UNITS_GEV[energy] for value in (sample.lowest, sample.highest))
    how = "as you say; they" if options.cell_unit != AUTO else "as they"
    return (
        f"Energies are in {energy} ({lowest:,.4g} to {highest:,.4g} GeV, {why}), cells in {cell}"
        f" ({how} sum up to {share:.3g} of the energy, where about {known.sampling_fraction:g} is"
        " known)"
    )


# ---- readout -------------------------------------------------------------------------------------
# What the showers of electrons look like in the files of a known calorimeter: how much of the
# energy its cells hold, and how deep.
#
# By both a file is checked for its units and for the order of its cells: in another unit the cells
# sum up to 20 to 1,000 times as much, and an electron of a thousandth of the energy reaches its
# maximum ln 1,000 = 6.9 radiation lengths earlier.

# How far the mean of N showers may be from what is expected: LIMIT + LIMIT_OF_ONE / √N. Showers
# that `simulation` makes are up to 0.28 off where there is one, and up to 0.07 where they are 32.
# Those of tests/domains/showers/hdf5_showers.py, of 1 to 1,000 GeV after another formula, are 0.09
# off, with energies a thousand times off 0.42, and in another order of the cells 0.50 to 0.64.
LIMIT, LIMIT_OF_ONE = 0.22, 0.30


@dataclass(frozen=True)
class Readout:
    """`sampling_fraction`: what the cells of a shower sum up to, over its incident energy.

    `lowest_gev`, `highest_gev`: the incident energies of its sets. `edges_x0`: (Z + 1,), where the
    layers begin and end, in radiation lengths; `seen`: (Z,), how much a layer shows of what it
    holds. `closed`: whether the first axis of a shower is an angle about its own axis, along which
    nothing changes.
    """

    name: str
    sampling_fraction: float
    lowest_gev: float
    highest_gev: float
    medium: Medium
    edges_x0: Numbers
    seen: Numbers
    closed: bool = False

    def profile(self, energies_gev: NDArray[Any]) -> Numbers:
        """(Z,): the share of each layer in the mean shower of these electrons (N,)."""
        held = mean_profiles(np.asarray(energies_gev, np.float64), self.medium).fractions(
            self.edges_x0
        )
        return _mean_shares(held * self.seen)

    def distance(self, cells: NDArray[Any], energies_gev: NDArray[Any]) -> float:
        """How far the mean of showers (N, X, Y, Z) is from that of such electrons: half the sum of
        |share - expected share| over the layers, 0 to 1; where the first axis is closed, the larger
        of this and the same around it. Cells in any unit, none below 0.
        """
        depth = _half_sum(_mean_shares(cells.sum(axis=(1, 2))), self.profile(energies_gev))
        if not self.closed:
            return depth
        return max(
            depth,
            _half_sum(
                _mean_shares(cells.sum(axis=(2, 3))), np.full(cells.shape[1], 1.0 / cells.shape[1])
            ),
        )


def limit(showers: int) -> float:
    """How far the mean of so many showers may be from what is expected."""
    return LIMIT + LIMIT_OF_ONE / math.sqrt(showers)


def _mean_shares(sums: NDArray[Any]) -> Numbers:
    """(N, Z) → (Z,): each shower counts the same; empty ones do not count."""
    whole = sums.sum(axis=1, dtype=np.float64)
    filled = whole > 0.0
    shares: Numbers = (
        (sums[filled] / whole[filled, None]).mean(axis=0)
        if filled.any()
        else np.zeros(sums.shape[1])
    )
    return shares


def _half_sum(shares: Numbers, expected: Numbers) -> float:
    return float(np.abs(shares - expected).sum() / 2.0)


# arXiv:2410.21611: 90 layers of 1.4 mm of tungsten and 0.3 mm of silicon, two of which are one
# voxel. The energies of the voxels are divided by 0.033, the fraction that the silicon sees
# (code/evaluate.py of the challenge: a readout threshold of 0.5 keV / 0.033), so they sum up to
# about E.
_TUNGSTEN = Material(74.0, 19.3, 3.504, 7.97)  # pure
_CHALLENGE = Medium.of(_TUNGSTEN, 1.4, SILICON, 0.3, gaps_mm=0.0)
_VOXEL_X0 = 2 * (1.4 / _TUNGSTEN.radiation_length_mm + 0.3 / SILICON.radiation_length_mm)
CALOCHALLENGE = Readout(
    "the CaloChallenge",
    sampling_fraction=1.0,
    lowest_gev=1.0,
    highest_gev=1_000.0,
    medium=_CHALLENGE,
    edges_x0=_VOXEL_X0 * np.arange(46.0),
    seen=np.ones(45),
    closed=True,
)
THREE_DGAN = Readout(
    "the 3DGAN's authors",
    sampling_fraction=0.02,
    lowest_gev=2.0,
    highest_gev=500.0,
    medium=CLIC.medium,
    edges_x0=CLIC.edges_x0,
    seen=CLIC.density_seen,
)
