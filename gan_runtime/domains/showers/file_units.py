"""The units of a file of showers: those that a person gives, or the only ones that make showers of a known calorimeter out of its numbers.

Energies: their range is that of the set. Cells: they sum up to the known share of the energy. Where both leave a choice, the depth of the
showers decides: it grows with the logarithm of the energy in GeV. Where that leaves one too, the person is asked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.errors import DatasetError
from gan_runtime.domains.showers import readout
from gan_runtime.domains.showers.preparation_options import AUTO, UNITS_GEV, ShowerFileOptions
from gan_runtime.domains.showers.readout import Readout

RANGE = 2.0  # so many times below and above the energies of the set
SHARE = 3.0  # the same of the share that is seen; units are at least 20 times apart


@dataclass(frozen=True)
class Units:
    """`energies`, `cells`: names of units. `share`: what the cells hold of the energies then. `reason`: a sentence about both."""

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
class Sample:
    """What is looked at. `name`: of the file; `lowest`, `highest`: of all energies of all files; `cells` (N, X, Y, Z) and `energies` (N,): of
    the first rows. All in the units of the file."""

    name: str
    lowest: float
    highest: float
    cells: NDArray[np.float32]
    energies: NDArray[np.float32]

    def share(self, energies: str, cells: str) -> float:
        """What the cells of a shower sum up to, over its energy, in these units: the median of those that are not empty."""
        sums = self.cells.sum(axis=(1, 2, 3), dtype=np.float64) * UNITS_GEV[cells]
        shares = (sums / (self.energies * UNITS_GEV[energies]))[sums != 0.0]
        return float(np.median(shares)) if len(shares) else 0.0


def units(sample: Sample, options: ShowerFileOptions, known: Readout) -> Units:
    """Raises DatasetError: none fits, or several do."""
    if not sample.lowest > 0.0:
        raise DatasetError(
            f"{sample.name}: its lowest incident energy is {sample.lowest:g}, but it has to be above 0."
        )
    of_energies = _of_energies(sample, options, known)
    pairs = [(energy, cell) for energy in of_energies for cell in _of_cells(sample, options, known, energy)]
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


def _of_energies(sample: Sample, options: ShowerFileOptions, known: Readout) -> list[str]:
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
        f"{sample.name}: its incident energies are from {sample.lowest:,.6g} to {sample.highest:,.6g}, which is neither in MeV nor in GeV the "
        f"range of {known.name}, {known.lowest_gev:,.0f} to {known.highest_gev:,.0f} GeV: are units mixed? Say which with energy_unit."
    )


def _of_cells(sample: Sample, options: ShowerFileOptions, known: Readout, energy: str) -> list[str]:
    if options.cell_unit != AUTO:
        return [options.cell_unit]
    share = known.sampling_fraction
    return [unit for unit in UNITS_GEV if share / SHARE < sample.share(energy, unit) < share * SHARE]


def _is_as_deep(sample: Sample, energy: str, known: Readout) -> bool:
    gev = sample.energies * UNITS_GEV[energy]
    return known.distance(np.maximum(sample.cells, 0.0), gev) <= readout.limit(len(gev))


def _no_share(sample: Sample, energy: str, known: Readout) -> DatasetError:
    shares = ", ".join(f"{sample.share(energy, unit):.2g} in {unit}" for unit in UNITS_GEV)
    return DatasetError(
        f"{sample.name}: the cells of a shower sum up to {shares} of the incident energy in {energy}, but to about {known.sampling_fraction:g} in "
        f"the sets of {known.name}: convert them, or say their unit with cell_unit."
    )


def _unclear(sample: Sample, known: Readout) -> DatasetError:
    return DatasetError(
        f"{sample.name}: its incident energies, from {sample.lowest:,.6g} to {sample.highest:,.6g}, may be in MeV or in GeV: either is in the range of "
        f"{known.name}, and the showers are as deep as those of neither or of both. Say which with energy_unit."
    )


def _reason(
    sample: Sample,
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
        f"Energies are in {energy} ({lowest:,.4g} to {highest:,.4g} GeV, {why}), cells in {cell} ({how} sum up to {share:.3g} of the "
        f"energy, where about {known.sampling_fraction:g} is known)"
    )
