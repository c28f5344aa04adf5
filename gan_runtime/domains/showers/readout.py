"""What the showers of electrons look like in the files of a known calorimeter: how much of the energy its cells hold, and how deep.

By both a file is checked for its units and for the order of its cells: in another unit the cells sum up to 20 to 1,000 times as much, and an
electron of a thousandth of the energy reaches its maximum ln 1,000 = 6.9 radiation lengths earlier.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime.domains.showers.detector import CLIC, SILICON, Material, Medium, Numbers
from gan_runtime.domains.showers.longitudinal import mean_profiles

# How far the mean of N showers may be from what is expected: LIMIT + LIMIT_OF_ONE / √N. Showers that `simulation` makes are up to 0.28 off where
# there is one, and up to 0.07 where they are 32. Those of tests/data/hdf5_showers.py, of 1 to 1,000 GeV after another formula, are 0.09 off, with
# energies a thousand times off 0.42, and in another order of the cells 0.50 to 0.64.
LIMIT, LIMIT_OF_ONE = 0.22, 0.30


@dataclass(frozen=True)
class Readout:
    """`sampling_fraction`: what the cells of a shower sum up to, over its incident energy. `lowest_gev`, `highest_gev`: the incident
    energies of its sets. `edges_x0`: (Z + 1,), where the layers begin and end, in radiation lengths; `seen`: (Z,), how much a layer
    shows of what it holds. `closed`: whether the first axis of a shower is an angle about its own axis, along which nothing changes."""

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
        held = mean_profiles(np.asarray(energies_gev, np.float64), self.medium).fractions(self.edges_x0)
        return _mean_shares(held * self.seen)

    def distance(self, cells: NDArray[Any], energies_gev: NDArray[Any]) -> float:
        """How far the mean of showers (N, X, Y, Z) is from that of such electrons: half the sum of |share - expected share| over the
        layers, 0 to 1; where the first axis is closed, the larger of this and the same around it. Cells in any unit, none below 0."""
        depth = _half_sum(_mean_shares(cells.sum(axis=(1, 2))), self.profile(energies_gev))
        if not self.closed:
            return depth
        return max(
            depth,
            _half_sum(_mean_shares(cells.sum(axis=(2, 3))), np.full(cells.shape[1], 1.0 / cells.shape[1])),
        )


def limit(showers: int) -> float:
    """How far the mean of so many showers may be from what is expected."""
    return LIMIT + LIMIT_OF_ONE / math.sqrt(showers)


def _mean_shares(sums: NDArray[Any]) -> Numbers:
    """(N, Z) → (Z,): each shower counts the same; empty ones do not count."""
    whole = sums.sum(axis=1, dtype=np.float64)
    filled = whole > 0.0
    shares: Numbers = (
        (sums[filled] / whole[filled, None]).mean(axis=0) if filled.any() else np.zeros(sums.shape[1])
    )
    return shares


def _half_sum(shares: Numbers, expected: Numbers) -> float:
    return float(np.abs(shares - expected).sum() / 2.0)


# arXiv:2410.21611: 90 layers of 1.4 mm of tungsten and 0.3 mm of silicon, two of which are one voxel. The energies of the voxels are divided by
# 0.033, the fraction that the silicon sees (code/evaluate.py of the challenge: a readout threshold of 0.5 keV / 0.033), so they sum up to about E.
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
