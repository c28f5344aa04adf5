"""What a page draws of showers beside real ones, for bins of energy and angle: profiles, spectra,
distributions, maps.

What the curves are called, and how they are read, stands in declared.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gan_runtime.domains.showers import scores
from gan_runtime.domains.showers.features import ORDERS, SPECTRUM_EDGES, Array, Features
from gan_runtime.domains.showers.scores import ShowerSample


@dataclass(frozen=True)
class ShowerCurve:
    """Means or shares over `x`, of real and of generated showers, with one standard deviation of
    each. `bins`: of energy and angle, -1 for all of them. `y`: of a map the second place of each
    number; else empty.
    """

    name: str
    bins: tuple[int, int]
    x: Array
    real: Array
    real_error: Array
    generated: Array
    generated_error: Array
    y: Array = field(default_factory=lambda: np.empty(0))


EVERY = -1


def curves(real: ShowerSample, other: ShowerSample) -> list[ShowerCurve]:
    """For every bin of energy and angle, and all of them together: what `CURVES` names.

    Bins are those of the real showers.
    """
    energy, angle = bounds(real)
    mine, theirs = _rows(real, energy, angle), _rows(other, energy, angle)
    grids = _grids(real.features, other.features)
    found = []
    for bins in mine:
        if len(mine[bins]) and len(theirs[bins]):
            one, two = real.features.chosen(mine[bins]), other.features.chosen(theirs[bins])
            found += [_curve(name, bins, one, two, grids) for name in grids]
    return [
        *found,
        _matrix(real.features, other.features),
        *([_angle_map(real, other)] if len(angle) else []),
    ]


def whole(real: ShowerSample, other: ShowerSample) -> list[ShowerCurve]:
    """Of all showers together, which all have one energy: profiles, spectrum and
    distributions, but nothing over the energy.
    """
    grids = _grids(real.features, other.features)
    names = [name for name in grids if name not in _RESPONSES]
    return [_curve(name, (EVERY, EVERY), real.features, other.features, grids) for name in names]


def _matrix(real: Features, other: Features) -> ShowerCurve:
    """The correlations of the layer sums of all showers, row after row; x: places in the flat
    matrix. Errors are not told.
    """
    mine, theirs = (scores.layer_correlations(features).reshape(-1) for features in (real, other))
    none = np.zeros(len(mine))
    return ShowerCurve(
        "layers", (EVERY, EVERY), np.arange(len(mine), dtype=np.float64), mine, none, theirs, none
    )


def _angle_map(real: ShowerSample, other: ShowerSample) -> ShowerCurve:
    """Shares of all showers by the angle that was asked for (x) and the one that is measured (y),
    rad; real ones have what is measured. What lies beyond the real angles is in no place, so that
    shares may add up to less.
    """
    edges = np.linspace(real.asked_angle.min(), real.asked_angle.max() + 1e-9, MAP_BINS + 1)
    asked, seen = np.meshgrid(*[(edges[1:] + edges[:-1]) / 2.0] * 2, indexing="ij")
    mine, theirs = (
        np.histogram2d(sample.asked_angle, sample.features.angle, [edges, edges])[0].reshape(-1)
        / len(sample)
        for sample in (real, other)
    )
    none = np.zeros(len(mine))
    return ShowerCurve(
        "angle_map", (EVERY, EVERY), asked.reshape(-1), mine, none, theirs, none, seen.reshape(-1)
    )


def bounds(real: ShowerSample) -> tuple[Array, Array]:
    """The edges of the bins of incident energy (GeV) and of the angle (rad); no edges of
    angles where there are none.
    """
    angles = real.asked_angle
    energy = scores.edges(real.features.energy_gev, scores.ENERGY_BINS)
    return energy, (
        np.empty(0) if np.isnan(angles).any() else scores.edges(angles, scores.ANGLE_BINS)
    )


def _rows(
    showers: ShowerSample, energy: Array, angle: Array
) -> dict[tuple[int, int], NDArray[np.int64]]:
    everything = np.arange(len(showers))
    by_energy = [everything, *scores.binned(showers.features.energy_gev, energy)]
    by_angle = [everything, *(scores.binned(showers.asked_angle, angle) if len(angle) else ())]
    return {
        (first - 1, second - 1): np.intersect1d(one, two)
        for first, one in enumerate(by_energy)
        for second, two in enumerate(by_angle)
    }


def _peak(axis: int, features: Features) -> Array:
    """The number of the brightest cell along an axis, from 1."""
    return features.peak[:, axis]


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
    "belief": lambda features: features.belief,
    "read_error": lambda features: features.read_gev / features.energy_gev - 1.0,
    **{f"peak_{axis}": partial(_peak, place) for place, axis in enumerate("xyz")},
    **{
        f"{name}_{axis}": partial(_moment, order, place)
        for order, name in zip(ORDERS, ("mean", "width", "skew"), strict=True)
        for place, axis in enumerate("xyz")
    },
}
# Means of a number over the incident energy: name → how it is read.
_RESPONSES: Mapping[str, Callable[[Features], Array]] = {
    "sampling_fraction": lambda features: features.sampling_fraction,
    "read_energy": lambda features: features.read_gev / features.energy_gev,
}
HISTOGRAM_BINS, RANGE = (
    24,
    (
        0.5,
        99.5,
    ),
)  # percentiles of the real numbers, with a margin on both sides
MAP_BINS = 20


def _grids(real: Features, other: Features) -> dict[str, Array]:
    """Name of each curve → its x: numbers of cells from 1, bins of energies, or bins of a
    number that hold both samples.
    """
    places: dict[str, Array] = {
        f"along_{axis}": np.arange(profile.shape[1], dtype=np.float64) + 1.0
        for axis, profile in real.profiles.items()
    }
    energies = scores.edges(real.energy_gev, 2 * scores.ENERGY_BINS)
    responses = {name: energies for name, read in _RESPONSES.items() if _known(read, real, other)}
    numbers = {
        name: _edges_of(name, read(real), read(other), real)
        for name, read in _NUMBERS.items()
        if _known(read, real, other)
    }
    return {**places, **responses, "spectrum": np.empty(0), **numbers}


def _known(read: Callable[[Features], Array], *samples: Features) -> bool:
    return not any(np.isnan(read(sample)).any() for sample in samples)


def _edges_of(name: str, mine: Array, theirs: Array, real: Features) -> Array:
    """Of the bins of a number: whole cells, a belief from 0 to 1, else as far as the real
    numbers go, or both where a network reads.
    """
    if name.startswith("peak_"):
        cells = real.profiles[name.removeprefix("peak_")].shape[1]
        return np.arange(cells + 1, dtype=np.float64) + 0.5
    if name == "belief":
        return np.linspace(0.0, 1.0, HISTOGRAM_BINS + 1)
    return _number_edges(np.concatenate([mine, theirs]) if name == "read_error" else mine)


def _number_edges(numbers: Array) -> Array:
    low, high = np.percentile(numbers, RANGE)
    margin = 0.25 * (high - low) or 0.5 * max(abs(high), 1e-6)
    return np.asarray(np.linspace(low - margin, high + margin, HISTOGRAM_BINS + 1), np.float64)


def _curve(
    name: str, bins: tuple[int, int], real: Features, other: Features, grids: Mapping[str, Array]
) -> ShowerCurve:
    if name in _NUMBERS:
        grid, sides = (
            grids[name],
            [_shares(_NUMBERS[name](side), grids[name]) for side in (real, other)],
        )
        grid = (grid[1:] + grid[:-1]) / 2.0
    elif name in _RESPONSES:
        grid = (grids[name][1:] + grids[name][:-1]) / 2.0
        sides = [
            _means_in_bins(_RESPONSES[name](side), side.energy_gev, grids[name])
            for side in (real, other)
        ]
    elif name == "spectrum":
        grid = 1e3 * np.sqrt(SPECTRUM_EDGES[1:] * SPECTRUM_EDGES[:-1])  # MeV
        sides = [_means(side.spectrum) for side in (real, other)]
    else:
        grid = grids[name]
        sides = [_means(side.profiles[name.removeprefix("along_")]) for side in (real, other)]
    return ShowerCurve(name, bins, grid, *sides[0], *sides[1])


def _means(rows: Array) -> tuple[Array, Array]:
    """Mean of each column of (N, K) and its standard error."""
    return rows.mean(axis=0), rows.std(axis=0) / math.sqrt(len(rows))


def _shares(numbers: Array, grid: Array) -> tuple[Array, Array]:
    """Share of the showers in each bin; error of counting.

    Numbers beyond the bins lie in none, and so the shares add up to less.
    """
    counts = np.histogram(numbers, grid)[0]
    return counts / len(numbers), np.sqrt(counts) / len(numbers)


def _means_in_bins(numbers: Array, by: Array, grid: Array) -> tuple[Array, Array]:
    """Mean and standard error of the numbers in each bin of `by`; NaN for an empty one."""
    rows = scores.binned(by, grid)
    means = [numbers[one].mean() if len(one) else math.nan for one in rows]
    errors = [numbers[one].std() / math.sqrt(len(one)) if len(one) else math.nan for one in rows]
    return np.asarray(means), np.asarray(errors)
