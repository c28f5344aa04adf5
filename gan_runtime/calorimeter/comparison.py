"""A sample of showers beside a real one: every score, and the curves that a page draws, for bins of energy and angle.

What scores and curves are called, and how they are read, stands in declared.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from gan_runtime.calorimeter import distances, scores
from gan_runtime.calorimeter.classifiers import auc
from gan_runtime.calorimeter.features import ORDERS, SPECTRUM_EDGES, Array, Features, high_level, measured
from gan_runtime.calorimeter.values import Value

Told = Callable[[str], None]  # what is computed now


@dataclass(frozen=True)
class Sample:
    """Showers (N, X, Y, Z) in GeV and what is measured on them. `asked_angle`: what they were to have, rad (N,)."""

    cells_gev: NDArray[np.float32]
    features: Features
    asked_angle: Array

    def __len__(self) -> int:
        return len(self.features)


def sample(
    cells_gev: NDArray[np.float32], energy_gev: Array, asked_angle: Array | None, periodic: tuple[int, ...]
) -> Sample:
    """With the features measured. `asked_angle`: None where the data set knows no angle."""
    features = measured(cells_gev, energy_gev, periodic, has_angle=asked_angle is not None)
    return Sample(cells_gev, features, features.angle if asked_angle is None else asked_angle)


def compared(real: Sample, other: Sample, told: Told = lambda _: None) -> dict[str, Value]:
    """Every score of `other` beside `real`, by name. A sample in which nothing is left gives what the formulas give.

    On one core: the matrices are small, and beside a training several threads wait for each other longer than they compute.
    """
    with threadpool_limits(1):
        return _compared(real, other, told)


def _compared(real: Sample, other: Sample, told: Told) -> dict[str, Value]:
    told("scores of the authors")
    bounds = scores.edges(real.features.energy_gev, scores.ENERGY_BINS)
    mine, theirs = real.features, other.features
    terms = (
        scores.moments_error(mine, theirs, bounds),
        scores.profile_error(mine, theirs, bounds),
        scores.angle_error(mine, theirs, other.asked_angle),
    )
    found = {
        "sampling_fraction": scores.sampling_fraction_error(mine, theirs, bounds),
        "total": scores.total_error(terms),
        **dict(zip(("moments", "profiles", "angle"), terms, strict=True)),
        **{f"profile_{axis}": scores.profile_distance(mine, theirs, axis) for axis in "xyz"},
        "correlations": scores.correlation_error(mine, theirs),
        "layers": scores.layer_correlation_error(mine, theirs),
        "similarity": scores.similarity(other.cells_gev, other.cells_gev),
    }
    one, two = high_level(mine), high_level(theirs)
    told("distances of the features")
    separations = [distances.separation(one[:, place], two[:, place]) for place in range(1, one.shape[1])]
    found |= {
        "fpd": _thousandfold(distances.fpd(one, two)),
        "kpd": _thousandfold(distances.kpd(one, two)),
        "separation": Value(float(np.mean(separations))),
    }
    told("training classifiers")
    return found | {"auc_high": auc(one, two), "auc_low": auc(low_level(real), low_level(other))}


def low_level(showers: Sample) -> NDArray[np.float32]:
    """(N, 1 + X·Y·Z): log10 of the incident energy in MeV, and each cell over the incident energy."""
    energy = showers.features.energy_gev[:, np.newaxis].astype(np.float32)
    cells = showers.cells_gev.reshape(len(showers), -1) / energy
    return np.concatenate([np.log10(energy * 1e3), cells], axis=1)


def _thousandfold(found: Value) -> Value:
    return Value(found.value * 1e3, found.error * 1e3)


@dataclass(frozen=True)
class Curve:
    """Means or shares over `x`, of real and of generated showers, with one standard deviation of each. `bins`: of energy and angle, -1
    for all of them."""

    name: str
    bins: tuple[int, int]
    x: Array
    real: Array
    real_error: Array
    generated: Array
    generated_error: Array


EVERY = -1


def curves(real: Sample, other: Sample) -> list[Curve]:
    """For every bin of energy and angle, and all of them together: what `CURVES` names. Bins are those of the real showers."""
    energy, angle = bounds(real)
    mine, theirs = _rows(real, energy, angle), _rows(other, energy, angle)
    grids = _grids(real.features, other.features)
    found = []
    for bins in mine:
        if len(mine[bins]) and len(theirs[bins]):
            one, two = real.features.chosen(mine[bins]), other.features.chosen(theirs[bins])
            found += [_curve(name, bins, one, two, grids) for name in grids]
    return [*found, _matrix(real.features, other.features)]


def _matrix(real: Features, other: Features) -> Curve:
    """The correlations of the layer sums of all showers, row after row; x: places in the flat matrix. Errors are not told."""
    mine, theirs = (scores.layer_correlations(features).reshape(-1) for features in (real, other))
    none = np.zeros(len(mine))
    return Curve("layers", (EVERY, EVERY), np.arange(len(mine), dtype=np.float64), mine, none, theirs, none)


def bounds(real: Sample) -> tuple[Array, Array]:
    """The edges of the bins of incident energy (GeV) and of the angle (rad); no edges of angles where there are none."""
    angles = real.asked_angle
    energy = scores.edges(real.features.energy_gev, scores.ENERGY_BINS)
    return energy, np.empty(0) if np.isnan(angles).any() else scores.edges(angles, scores.ANGLE_BINS)


def _rows(showers: Sample, energy: Array, angle: Array) -> dict[tuple[int, int], NDArray[np.int64]]:
    everything = np.arange(len(showers))
    by_energy = [everything, *scores.binned(showers.features.energy_gev, energy)]
    by_angle = [everything, *(scores.binned(showers.asked_angle, angle) if len(angle) else ())]
    return {
        (first - 1, second - 1): np.intersect1d(one, two)
        for first, one in enumerate(by_energy)
        for second, two in enumerate(by_angle)
    }


def _moment(order: int, axis: int, features: Features) -> Array:
    """A moment in cells: the mean place, or the square or cubic root of a central moment."""
    moment = features.moments[:, axis, order - 1]
    return moment if order == 1 else np.asarray(np.sqrt(moment) if order == 2 else np.cbrt(moment))


# Numbers of single showers whose distribution is drawn: name → how it is read.
_NUMBERS: Mapping[str, Callable[[Features], Array]] = {
    "visible": lambda features: features.visible_gev,
    "response": lambda features: features.sampling_fraction,
    "hits": lambda features: features.hits,
    "angles": lambda features: features.angle,
    **{
        f"{name}_{axis}": partial(_moment, order, place)
        for order, name in zip(ORDERS, ("mean", "width", "skew"), strict=True)
        for place, axis in enumerate("xyz")
    },
}
HISTOGRAM_BINS, RANGE = 30, (0.5, 99.5)  # percentiles of the real numbers, with a margin on both sides


def _grids(real: Features, other: Features) -> dict[str, Array]:
    """Name of each curve → its x: numbers of cells from 1, bins of energies, or bins of a number that hold both samples."""
    places: dict[str, Array] = {
        f"along_{axis}": np.arange(profile.shape[1], dtype=np.float64) + 1.0
        for axis, profile in real.profiles.items()
    }
    energies = scores.edges(real.energy_gev, 2 * scores.ENERGY_BINS)
    numbers = {
        name: _number_edges(read(real))
        for name, read in _NUMBERS.items()
        if not (np.isnan(read(real)).any() or np.isnan(read(other)).any())
    }
    return {**places, "sampling_fraction": energies, "spectrum": np.empty(0), **numbers}


def _number_edges(numbers: Array) -> Array:
    low, high = np.percentile(numbers, RANGE)
    margin = 0.25 * (high - low) or 0.5 * max(abs(high), 1e-6)
    return np.asarray(np.linspace(low - margin, high + margin, HISTOGRAM_BINS + 1), np.float64)


def _curve(
    name: str, bins: tuple[int, int], real: Features, other: Features, grids: Mapping[str, Array]
) -> Curve:
    if name in _NUMBERS:
        grid, sides = grids[name], [_shares(_NUMBERS[name](side), grids[name]) for side in (real, other)]
        grid = (grid[1:] + grid[:-1]) / 2.0
    elif name == "sampling_fraction":
        grid = (grids[name][1:] + grids[name][:-1]) / 2.0
        sides = [
            _means_in_bins(side.sampling_fraction, side.energy_gev, grids[name]) for side in (real, other)
        ]
    elif name == "spectrum":
        grid = 1e3 * np.sqrt(SPECTRUM_EDGES[1:] * SPECTRUM_EDGES[:-1])  # MeV
        sides = [_means(side.spectrum) for side in (real, other)]
    else:
        grid = grids[name]
        sides = [_means(side.profiles[name.removeprefix("along_")]) for side in (real, other)]
    return Curve(name, bins, grid, *sides[0], *sides[1])


def _means(rows: Array) -> tuple[Array, Array]:
    """Mean of each column of (N, K) and its standard error."""
    return rows.mean(axis=0), rows.std(axis=0) / math.sqrt(len(rows))


def _shares(numbers: Array, grid: Array) -> tuple[Array, Array]:
    """Share of the showers in each bin; error of counting. Numbers beyond the bins lie in none, and so the shares add up to less."""
    counts = np.histogram(numbers, grid)[0]
    return counts / len(numbers), np.sqrt(counts) / len(numbers)


def _means_in_bins(numbers: Array, by: Array, grid: Array) -> tuple[Array, Array]:
    """Mean and standard error of the numbers in each bin of `by`; NaN for an empty one."""
    rows = scores.binned(by, grid)
    means = [numbers[one].mean() if len(one) else math.nan for one in rows]
    errors = [numbers[one].std() / math.sqrt(len(one)) if len(one) else math.nan for one in rows]
    return np.asarray(means), np.asarray(errors)
