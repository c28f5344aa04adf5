"""What files of showers were seen to hold, and what was left out and changed: counted part by part, said in the summary."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime.data.summary import Curve, Quantity

Floats = NDArray[np.float64]


@dataclass
class Tally:
    """`showers`: those that are kept. `odd`, `faint`: left out, for a sum far from that of the others, and for next to none.
    `below_0`: cells that became empty; `given`: the sum of what the showers held of their energies before that.
    `stored`, `squares`: the sum of what they hold now, and of its squares. `lowest`, `highest`: of the energies, GeV. `layers`: (Z,), the
    sum of the share of each layer."""

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
        """Showers that are kept: cells (N, X, Y, Z), none of them all empty, and incident energies (N,)."""
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
