"""Each part of a file of showers is checked and cleaned before it is stored, and what was done is
counted.

Left out, and counted: showers with next to nothing in their cells, and single ones whose sum is far
from that of the others. Refused: many of these at once, as another unit or a filler such as -1
makes them; a cell that cannot be stored; cells below 0 that hold up the sum; and cells in an order
that makes no showers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.errors import DatasetError
from gan_runtime.data.summary import Curve, Quantity
from gan_runtime.domains.showers import file_units
from gan_runtime.domains.showers.fields import CELL_UNITS, POWER
from gan_runtime.domains.showers.file_units import Readout, Units

Cells = NDArray[np.float32]
# Of a cell that float16 holds: 9,273.
# ---- conversion tally ----------------------------------------------------------------------------
# What files of showers were seen to hold, and what was left out and changed: counted part by part,
# said in the summary.

Floats = NDArray[np.float64]


@dataclass
class ShowerTally:
    """`showers`: those that are kept.

    `odd`, `faint`: left out, for a sum far from that of the others, and for next to none.
    `below_0`: cells that became empty; `given`: the sum of what the showers held of their energies
    before that. `stored`, `squares`: the sum of what they hold now, and of its squares. `lowest`,
    `highest`: of the energies, GeV. `layers`: (Z,), the sum of the share of each layer.
    """

    showers: int = 0
    odd: int = 0
    faint: int = 0
    below_0: int = 0
    given: float = 0.0
    stored: float = 0.0
    squares: float = 0.0
    lowest: float = math.inf
    highest: float = 0.0
    layers: Floats = field(default_factory=lambda: np.zeros(1))

    def add(self, cells_gev: NDArray[Any], energies_gev: NDArray[Any]) -> None:
        """Showers that are kept: cells (N, X, Y, Z), none of them all empty, and incident
        energies (N,).
        """
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
        """The mean of what the cells of a shower hold of its energy."""
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

    def profile(self) -> Curve:
        """For the summary: the mean share of each layer, in per cent."""
        shares = 100.0 * self.layers / self.showers
        return Curve(
            title="Longitudinal profile",
            x_label="Layer",
            y_label="Deposit (%)",
            x=tuple(range(1, len(shares) + 1)),
            y=tuple(float(share) for share in shares),
        )


# ---- checks ----

LARGEST_GEV = float(np.finfo(np.float16).max) ** (1.0 / POWER) / CELL_UNITS
FAR = 10.0  # times more or less than the share of the energy that the cells of all hold
MOST_ODD, MOST_ODD_SHARE = 2, 0.05  # of the showers of a part: more of them are no accident
WARNED_SHARE = 1.3  # times more or less than is known
WARNED_CHANGE = 0.001  # of the sums, by all cells that become empty
NOISE = 4.0  # standard deviations: a threshold above it
MOST_RISE = 0.01  # of the sums, by cells below 0 that become empty
RISEN_SHARE = 0.1  # of the showers: those that may rise more


@dataclass(frozen=True)
class Part:
    """Showers as a file has them, from row `begin` on: `cells` (N, X, Y, Z), `energies` (N,).
    `name`: of the file.
    """

    name: str
    begin: int
    cells: Cells
    energies: NDArray[np.float32]

    @property
    def rows(self) -> str:
        """For the beginning of a sentence."""
        return f"{self.name}, rows {self.begin:,} to {self.begin + len(self.cells) - 1:,}"


@dataclass(frozen=True)
class Cleaned:
    """`kept`: (N,), which showers of a part are; `cells_gev` (n, X, Y, Z) and `energies_gev`
    (n,) of these.
    """

    kept: NDArray[np.bool_]
    cells_gev: Cells
    energies_gev: NDArray[np.float32]


@dataclass(frozen=True)
class Rules:
    """`least_gev`: showers whose cells hold no more are left out.

    `threshold`: of a cell, in units of `threshold_gev`. `negative_cells`: as the option says.

    `order`: in which the cells are taken, by its name; empty where that is not to be checked.
    `orders`: the same showers with their cells taken in other orders, by name.
    """

    known: Readout
    least_gev: float
    threshold: float
    threshold_gev: float
    negative_cells: str
    order: str
    orders: Callable[[Cells], Iterable[tuple[str, Cells]]] = lambda _cells: ()


@dataclass
class Checks:
    """Of all parts of a source, one after the other."""

    rules: Rules
    units: Units
    tally: ShowerTally = field(default_factory=ShowerTally)

    def cleaned(self, part: Part) -> Cleaned:
        """Raises DatasetError, see above. Changes the cells of the part."""
        cells, energies = part.cells, part.energies * np.float32(self.units.energy_gev)
        cells *= np.float32(self.units.cell_gev)
        _check_largest(part)
        sums = _sums(cells)
        given = sums / energies
        odd = self._odd(part, given, energies)
        negative = np.minimum(cells, 0.0)
        below_0 = (negative < 0.0).sum(axis=(1, 2, 3))
        cells[cells < self.rules.threshold * self.rules.threshold_gev] = 0.0
        # Noise around an empty shower sums up to nothing, but not what of it is above 0.
        kept = ~odd & (np.minimum(sums, _sums(cells)) > self.rules.least_gev)
        showers = Cleaned(kept, cells[kept], energies[kept])
        if below_0[kept].any():
            self._fill_up(part.rows, showers, given[kept], negative[kept])
        self._check_order(part.rows, showers)
        self.tally.odd += int(odd.sum())
        self.tally.faint += int((~odd & ~kept).sum())
        self.tally.below_0 += int(below_0[kept].sum())
        self.tally.given += float(given[kept].sum())
        self.tally.add(showers.cells_gev, showers.energies_gev)
        return showers

    def changes(self) -> dict[str, int]:
        """For the summary: what was changed, and how often."""
        kind = (
            "cells below 0 made empty, the others scaled"
            if self._scales
            else "cells below 0 made empty"
        )
        return {kind: self.tally.below_0} if self.tally.below_0 else {}

    def note(self, faint: str) -> str:
        """For the summary: the units, and what was left out.

        `faint`: why, the end of a sentence.
        """
        tally = self.tally
        total = tally.showers + tally.faint + tally.odd
        left_out = (
            [f"{tally.faint:,} of {total:,} showers are left out: each {faint}"]
            if tally.faint
            else []
        )
        odd = (
            f"{tally.odd:,} of {total:,} showers are left out: the sum of each is over {FAR:g}"
            " times off that of the others"
        )
        return ". ".join([*left_out, *([odd] if tally.odd else []), self.units.reason])

    def warnings(self, usual: tuple[str, str]) -> tuple[str, ...]:
        """For the summary. `usual`: units of energies and cells in such files."""
        tally, units, known = self.tally, self.units, self.rules.known
        given, stored = tally.given / tally.showers, tally.sampling_fraction
        warnings = []
        if (units.energies, units.cells) != usual:
            warnings.append(
                f"Energies are read in {units.energies} and cells in {units.cells}; the files of"
                f" {known.name} have {usual[0]} and {usual[1]}. Check that this is right."
            )
        if abs(stored / given - 1.0) > WARNED_CHANGE:
            warnings.append(
                f"Cells below 0 or the threshold are empty, so the showers hold {stored:.4g} of the"
                f" energy, where the file has {given:.4g}."
            )
        if not 1.0 / WARNED_SHARE < stored / known.sampling_fraction < WARNED_SHARE:
            warnings.append(
                f"The showers hold {stored:.3g} of the energy, where about"
                f" {known.sampling_fraction:g} is known of {known.name}."
            )
        return tuple(warnings)

    @property
    def _scales(self) -> bool:
        return self.rules.negative_cells == "rescale"

    def _odd(
        self, part: Part, shares: NDArray[np.float64], energies: NDArray[np.float32]
    ) -> NDArray[np.bool_]:
        """Which showers have a sum that is far from that of the others.

        Those that are nearly empty do not count.
        """
        usual = self.units.share
        is_far = ~((shares > usual / FAR) & (shares < usual * FAR))
        odd: NDArray[np.bool_] = is_far & (np.abs(shares) * energies > self.rules.least_gev)
        if odd.sum() > max(MOST_ODD, MOST_ODD_SHARE * len(odd)):
            raise DatasetError(
                f"{part.rows}: the cells of {odd.sum():,} showers, from row"
                f" {part.begin + int(odd.argmax()):,} on, sum up to {np.median(shares[odd]):.2g} of"
                f" the incident energy, but those of the first rows to {usual:.2g}. Are they in"
                " another unit, or filled up with one number? Convert them, or leave them out of"
                " the file."
            )
        return odd

    def _fill_up(
        self, rows: str, showers: Cleaned, given: NDArray[np.float64], negative: Cells
    ) -> None:
        """Cells below 0, which were `negative`, have become empty.

        Scales the others of each shower that had some, so that it holds what was `given` of its
        energy, if that is chosen.
        """
        cells, energies = showers.cells_gev, showers.energies_gev
        stored = _sums(cells) / energies
        if self.rules.negative_cells == "rescale":
            factors = np.where(negative.any(axis=(1, 2, 3)), given / stored, 1.0).astype(np.float32)
            cells *= factors[:, None, None, None]
        elif self.rules.negative_cells == "refuse":
            rise = float(np.quantile(stored / given, 1.0 - RISEN_SHARE)) - 1.0
            if rise > MOST_RISE:
                raise self._risen(rows, given.mean(), stored.mean(), rise, showers, negative)

    def _risen(
        self, rows: str, given: float, stored: float, rise: float, showers: Cleaned, negative: Cells
    ) -> DatasetError:
        """The error, with the numbers that each remedy leaves."""
        cells, energies = showers.cells_gev, showers.energies_gev
        above = NOISE * float(np.sqrt(np.square(negative[negative < 0.0]).mean()))
        left = (_sums(np.where(cells < above, np.float32(0.0), cells)) / energies).mean()
        return DatasetError(
            f"{rows}: cells below 0, such as noise leaves, hold the sums down: made empty, they"
            f" would raise them from {given:.3g} to {stored:.3g} of the incident energy, and by"
            f" over {rise:.1%} in one shower of {1.0 / RISEN_SHARE:.0f}. Set negative_cells=rescale"
            " to scale the other cells of each shower so that its sum stays, a threshold above the"
            f" noise (threshold={above / self.rules.threshold_gev:.3g} leaves {left:.3g}), or"
            " negative_cells=clip to take the higher sums."
        )

    def _check_order(self, rows: str, showers: Cleaned) -> None:
        rules, cells, energies = self.rules, showers.cells_gev, showers.energies_gev
        if not rules.order or not len(cells):
            return
        most, off = file_units.limit(len(cells)), rules.known.distance(cells, energies)
        if off <= most:
            return
        others = {
            name: rules.known.distance(other, energies) for name, other in rules.orders(cells)
        }
        best = min(others, key=others.__getitem__, default="")
        fits = best and others[best] <= most
        advice = (
            f"In the order {best} they are: set order={best}"
            if fits
            else "Look at their order and units"
        )
        raise DatasetError(
            f"{rows}: its cells, in the order {rules.order}, are not the showers of electrons:"
            f" {off:.0%} of the energy lies elsewhere than it should, and {most:.0%} may. {advice},"
            f" or set order={rules.order} to take them as they are."
        )


def _sums(cells: Cells) -> NDArray[np.float64]:
    sums: NDArray[np.float64] = cells.sum(axis=(1, 2, 3), dtype=np.float64)
    return sums


def _check_largest(part: Part) -> None:
    """Raises DatasetError for a cell, in GeV, that would be stored as infinity."""
    largest = part.cells.max()
    if largest > LARGEST_GEV:
        row = part.begin + int(part.cells.max(axis=(1, 2, 3)).argmax())
        raise DatasetError(
            f"{part.name}, row {row:,}: a cell holds {largest:,.3g} GeV, but at most"
            f" {LARGEST_GEV:,.0f} GeV can be stored (float16): correct that shower, or leave it out"
            " of the file."
        )
