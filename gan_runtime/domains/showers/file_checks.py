"""Checks of a file of showers: each part is cleaned before it is stored, and changes are counted.

Skipped: showers with next to nothing in their cells, and single ones whose sum is far from that of
the others. Refused: many of these at once, as with another unit or a filler such as -1; a cell that
cannot be stored; negative cells that lower the sums; and cells whose order gives no showers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.errors import DatasetError
from gan_runtime.data.summary import Quantity, SummaryCurve
from gan_runtime.domains.showers.detector import Medium, Numbers, mean_profiles
from gan_runtime.domains.showers.entry import CELL_UNITS, POWER
from gan_runtime.domains.showers.preparation_options import UNITS_GEV

Cells = NDArray[np.float32]

LARGEST_GEV = float(np.finfo(np.float16).max) ** (1.0 / POWER) / CELL_UNITS  # 9,273, in float16
FAR = 10.0  # times more or less than the share of the energy in the cells of all showers
MOST_ODD, MOST_ODD_SHARE = 2, 0.05  # most odd showers of a part; more indicate a wrong unit
WARNED_SHARE = 1.3  # times more or less than expected
WARNED_CHANGE = 0.001  # change of the sums from which a warning is given
NOISE = 4.0  # standard deviations: a threshold above it
MOST_RISE = 0.01  # most rise of the sums from negative cells that become empty
RISEN_SHARE = 0.1  # share of the showers that can rise more
# Limit of the distance of N showers from the expected mean shower: LIMIT + LIMIT_OF_ONE / √N.
# Showers of `simulation` are up to 0.28 off for N = 1 and up to 0.07 for N = 32. Those of
# tests/domains/showers/hdf5_showers.py, of 1 to 1,000 GeV by another formula, are 0.09 off, with
# energies a thousand times off 0.42, and with another order of the cells 0.50 to 0.64.
LIMIT, LIMIT_OF_ONE = 0.22, 0.30


@dataclass(frozen=True)
class FileUnits:
    """`energies`, `cells`: names of units.

    `share`: of the energies in the cells, with these units. `reason`: a sentence about both.
    """

    energies: str
    cells: str
    share: float
    reason: str

    @property
    def energy_gev(self) -> float:
        """The unit of the energies, in GeV."""
        return UNITS_GEV[self.energies]

    @property
    def cell_gev(self) -> float:
        """The unit of the cells, in GeV."""
        return UNITS_GEV[self.cells]


@dataclass(frozen=True)
class Readout:
    """Electrons in the data sets of a known calorimeter.

    `sampling_fraction`: sum of the cells of a shower over its incident energy. `lowest_gev`,
    `highest_gev`: incident energies. `edges_x0`: (Z + 1,), the ends of the layers in radiation
    lengths; `visible`: (Z,), the visible part of the energy in each. `periodic`: whether the first
    axis of a shower is an angle about its axis, along which the mean shower is constant.

    A file is checked by them for its units and for the order of its cells: in another unit the
    cells sum to 20 to 1,000 times as much, and an electron of a thousandth of the energy reaches
    its maximum ln 1,000 = 6.9 radiation lengths earlier.
    """

    name: str
    sampling_fraction: float
    lowest_gev: float
    highest_gev: float
    medium: Medium
    edges_x0: Numbers
    visible: Numbers
    periodic: bool = False

    def profile(self, energies_gev: NDArray[Any]) -> Numbers:
        """(Z,): the share of each layer in the mean shower of these electrons (N,)."""
        profiles = mean_profiles(np.asarray(energies_gev, np.float64), self.medium)
        return _mean_shares(profiles.fractions(self.edges_x0) * self.visible)

    def distance(self, cells: NDArray[Any], energies_gev: NDArray[Any]) -> float:
        """Distance of the mean of showers (N, X, Y, Z) from that of such electrons: half the sum of
        |share - expected share| over the layers, 0 to 1; on a periodic grid, the larger of this and
        the same around it. Cells in any unit, at least 0.
        """
        depth = _half_sum(_mean_shares(cells.sum(axis=(1, 2))), self.profile(energies_gev))
        if not self.periodic:
            return depth
        angles = cells.shape[1]
        uniform = np.full(angles, 1.0 / angles)
        return max(depth, _half_sum(_mean_shares(cells.sum(axis=(2, 3))), uniform))


def limit(showers: int) -> float:
    """The largest allowed distance for this number of showers."""
    return LIMIT + LIMIT_OF_ONE / math.sqrt(showers)


def _mean_shares(sums: NDArray[Any]) -> Numbers:
    """The mean shares (N, Z) → (Z,): each nonempty shower has equal weight."""
    whole = sums.sum(axis=1, dtype=np.float64)
    filled = whole > 0.0
    if not filled.any():
        return np.zeros(sums.shape[1])
    mean: Numbers = (sums[filled] / whole[filled, None]).mean(axis=0)
    return mean


def _half_sum(shares: Numbers, expected: Numbers) -> float:
    return float(np.abs(shares - expected).sum() / 2.0)


@dataclass
class ShowerTally:
    """Counts and sums over a set of showers.

    `showers`: stored ones. `odd`, `faint`: skipped, for a sum far from that of the others, and for
    next to none. `below_0`: cells that became empty. `before`: the sum of the shares of their
    energies in the cells before that; `stored`, `squares`: after it, and of the squares. `lowest`,
    `highest`: energies, GeV. `layers`: (Z,), the sum of the share of each layer.
    """

    showers: int = 0
    odd: int = 0
    faint: int = 0
    below_0: int = 0
    before: float = 0.0
    stored: float = 0.0
    squares: float = 0.0
    lowest: float = math.inf
    highest: float = 0.0
    layers: Numbers = field(default_factory=lambda: np.zeros(1))

    def add(self, cells_gev: NDArray[Any], energies_gev: NDArray[Any]) -> None:
        """Stored showers: cells (N, X, Y, Z), none of them all 0, and energies (N,)."""
        if not len(cells_gev):
            return
        layers = cells_gev.sum(axis=(1, 2), dtype=np.float64)
        sums = layers.sum(axis=1)
        shares = sums / energies_gev
        self.showers += len(shares)
        self.stored += float(shares.sum())
        self.squares += float((shares**2).sum())
        self.lowest = min(self.lowest, float(energies_gev.min()))
        self.highest = max(self.highest, float(energies_gev.max()))
        self.layers = self.layers + (layers / sums[:, None]).sum(axis=0)

    @property
    def sampling_fraction(self) -> float:
        """Mean share of the energy of a shower in its cells."""
        return self.stored / self.showers

    def quantities(self) -> tuple[Quantity, ...]:
        """For the summary."""
        spread = math.sqrt(max(self.squares / self.showers - self.sampling_fraction**2, 0.0))
        return (
            Quantity(name="sampling fraction", value=self.sampling_fraction),
            Quantity(name="its spread", value=spread),
            Quantity(name="lowest energy", value=self.lowest, unit="GeV"),
            Quantity(name="highest energy", value=self.highest, unit="GeV"),
        )

    def profile(self) -> SummaryCurve:
        """For the summary: the mean share of each layer, in %."""
        shares = 100.0 * self.layers / self.showers
        return SummaryCurve(
            title="Longitudinal profile",
            x_label="Layer",
            y_label="Deposit (%)",
            x=tuple(range(1, len(shares) + 1)),
            y=tuple(float(share) for share in shares),
        )


@dataclass(frozen=True)
class ShowerPart:
    """Showers of a file from row `begin` on: `cells` (N, X, Y, Z), `energies` (N,). `name`: of the
    file.
    """

    name: str
    begin: int
    cells: Cells
    energies: NDArray[np.float32]

    @property
    def rows(self) -> str:
        """The begin of a sentence about them."""
        return f"{self.name}, rows {self.begin:,} to {self.begin + len(self.cells) - 1:,}"


@dataclass(frozen=True)
class CheckedShowers:
    """`used`: (N,), which showers of a part are stored; `cells_gev` (n, X, Y, Z) and `energies_gev`
    (n,) of these.
    """

    used: NDArray[np.bool_]
    cells_gev: Cells
    energies_gev: NDArray[np.float32]


@dataclass(frozen=True)
class FileRules:
    """`least_gev`: showers whose cells sum to no more are skipped.

    `threshold`: of a cell, in units of `threshold_gev`. `negative_cells`: as the option. `order`:
    name of the order of the cells; empty for no check. `orders`: the same showers with their cells
    in other orders, by name.
    """

    readout: Readout
    least_gev: float
    threshold: float
    threshold_gev: float
    negative_cells: str
    order: str
    orders: Callable[[Cells], Iterable[tuple[str, Cells]]] = lambda _cells: ()


@dataclass
class FileChecks:
    """Checks all parts of a source, one after another."""

    rules: FileRules
    units: FileUnits
    tally: ShowerTally = field(default_factory=ShowerTally)

    def checked(self, part: ShowerPart) -> CheckedShowers:
        """Changes the cells of the part. Raises DatasetError for a refused part."""
        cells, energies = part.cells, part.energies * np.float32(self.units.energy_gev)
        cells *= np.float32(self.units.cell_gev)
        _check_largest(part)
        sums = _sums(cells)
        shares = sums / energies
        odd = self._odd(part, shares, energies)
        negative = np.minimum(cells, 0.0)
        below_0 = (negative < 0.0).sum(axis=(1, 2, 3))
        cells[cells < self.rules.threshold * self.rules.threshold_gev] = 0.0
        # Noise around an empty shower sums to 0, but not its positive part.
        used = ~odd & (np.minimum(sums, _sums(cells)) > self.rules.least_gev)
        showers = CheckedShowers(used, cells[used], energies[used])
        if below_0[used].any():
            self._compensate(part.rows, showers, shares[used], negative[used])
        self._check_order(part.rows, showers)
        self.tally.odd += int(odd.sum())
        self.tally.faint += int((~odd & ~used).sum())
        self.tally.below_0 += int(below_0[used].sum())
        self.tally.before += float(shares[used].sum())
        self.tally.add(showers.cells_gev, showers.energies_gev)
        return showers

    def changes(self) -> dict[str, int]:
        """For the summary: changes, with their counts."""
        scaled = ", the others scaled" if self.rules.negative_cells == "rescale" else ""
        return {f"negative cells emptied{scaled}": self.tally.below_0} if self.tally.below_0 else {}

    def note(self, faint: str) -> str:
        """For the summary: skipped showers and the units. `faint`: the end of a sentence."""
        tally = self.tally
        total = tally.showers + tally.faint + tally.odd
        skipped = (
            (tally.faint, f"each {faint}"),
            (tally.odd, f"the sum of each is over {FAR:g} times off that of the others"),
        )
        sentences = [
            f"{count:,} of {total:,} showers are skipped: {why}" for count, why in skipped if count
        ]
        return ". ".join([*sentences, self.units.reason])

    def warnings(self, usual: tuple[str, str]) -> tuple[str, ...]:
        """For the summary. `usual`: units of energies and cells in these files."""
        tally, units, readout = self.tally, self.units, self.rules.readout
        before, stored = tally.before / tally.showers, tally.sampling_fraction
        warnings = []
        if (units.energies, units.cells) != usual:
            warnings.append(
                f"Energies are read in {units.energies} and cells in {units.cells}; the files of"
                f" {readout.name} have {usual[0]} and {usual[1]}. Check that this is right."
            )
        if abs(stored / before - 1.0) > WARNED_CHANGE:
            warnings.append(
                "Cells below 0 or the threshold are emptied, so the sums change from"
                f" {before:.4g} to {stored:.4g} of the energy."
            )
        if not 1.0 / WARNED_SHARE < stored / readout.sampling_fraction < WARNED_SHARE:
            warnings.append(
                f"The cells sum to {stored:.3g} of the energy, where about"
                f" {readout.sampling_fraction:g} is expected for {readout.name}."
            )
        return tuple(warnings)

    def _odd(
        self, part: ShowerPart, shares: NDArray[np.float64], energies: NDArray[np.float32]
    ) -> NDArray[np.bool_]:
        """Selects showers whose sum is far from the others'; nearly empty showers do not count."""
        usual = self.units.share
        is_far = ~((shares > usual / FAR) & (shares < usual * FAR))
        odd: NDArray[np.bool_] = is_far & (np.abs(shares) * energies > self.rules.least_gev)
        if odd.sum() > max(MOST_ODD, MOST_ODD_SHARE * len(odd)):
            raise DatasetError(
                f"{part.rows}: the cells of {odd.sum():,} showers, from row"
                f" {part.begin + int(odd.argmax()):,} on, sum to {np.median(shares[odd]):.2g} of"
                f" the incident energy; the first rows sum to {usual:.2g}. Check for"
                " another unit or a filler, then convert them or remove them from the file."
            )
        return odd

    def _compensate(
        self, rows: str, showers: CheckedShowers, shares: NDArray[np.float64], negative: Cells
    ) -> None:
        """For cells that were `negative` and are empty now, scales the others of their shower to
        the same share, or refuses too large changes, as the option says.
        """
        cells, energies = showers.cells_gev, showers.energies_gev
        stored = _sums(cells) / energies
        if self.rules.negative_cells == "rescale":
            ratios = np.where(negative.any(axis=(1, 2, 3)), shares / stored, 1.0)
            cells *= ratios.astype(np.float32)[:, None, None, None]
        elif self.rules.negative_cells == "refuse":
            rise = float(np.quantile(stored / shares, 1.0 - RISEN_SHARE)) - 1.0
            if rise > MOST_RISE:
                raise self._risen(rows, shares.mean(), stored.mean(), rise, showers, negative)

    def _risen(
        self,
        rows: str,
        before: float,
        stored: float,
        rise: float,
        showers: CheckedShowers,
        negative: Cells,
    ) -> DatasetError:
        """The error, with the numbers of each remedy."""
        cells, energies = showers.cells_gev, showers.energies_gev
        above = NOISE * float(np.sqrt(np.square(negative[negative < 0.0]).mean()))
        sum_above = (_sums(np.where(cells < above, np.float32(0.0), cells)) / energies).mean()
        return DatasetError(
            f"{rows}: negative cells, such as noise, lower the sums. Emptied, they raise them from"
            f" {before:.3g} to {stored:.3g} of the incident energy; in one shower of"
            f" {1.0 / RISEN_SHARE:.0f} by over {rise:.1%}. Set negative_cells=rescale to"
            f" preserve the sums, threshold={above / self.rules.threshold_gev:.3g} to remove the"
            f" noise (leaves {sum_above:.3g}), or negative_cells=clip to accept the higher sums."
        )

    def _check_order(self, rows: str, showers: CheckedShowers) -> None:
        rules, cells, energies = self.rules, showers.cells_gev, showers.energies_gev
        if not rules.order or not len(cells):
            return
        most, distance = limit(len(cells)), rules.readout.distance(cells, energies)
        if distance <= most:
            return
        distances = {
            name: rules.readout.distance(other, energies) for name, other in rules.orders(cells)
        }
        best = min(distances, key=distances.__getitem__, default="")
        fits = best and distances[best] <= most
        advice = f"Set order={best}, which fits" if fits else "Check their order and units"
        raise DatasetError(
            f"{rows}: its cells, in the order {rules.order}, are not the showers of electrons:"
            f" {distance:.0%} of the energy is in the wrong place, and {most:.0%} is allowed."
            f" {advice}, or set order={rules.order} to skip this check."
        )


def _sums(cells: Cells) -> NDArray[np.float64]:
    sums: NDArray[np.float64] = cells.sum(axis=(1, 2, 3), dtype=np.float64)
    return sums


def _check_largest(part: ShowerPart) -> None:
    """Raises DatasetError for a cell, in GeV, that would be stored as infinity."""
    largest = part.cells.max()
    if largest > LARGEST_GEV:
        row = part.begin + int(part.cells.max(axis=(1, 2, 3)).argmax())
        raise DatasetError(
            f"{part.name}, row {row:,}: a cell has {largest:,.3g} GeV, but at most"
            f" {LARGEST_GEV:,.0f} GeV can be stored (float16): correct the shower, or remove it"
            " from the file."
        )
