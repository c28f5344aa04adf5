"""Curves of generated next to simulated showers, for bins of energy and angle: profiles, spectra,
distributions and maps, and how an answer stores them with a few showers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gan_runtime.domains.showers import scores
from gan_runtime.domains.showers.features import ORDERS, SPECTRUM_EDGES, Array, Features
from gan_runtime.domains.showers.scores import ShowerSample, binned
from gan_runtime.records.answer import ArrayFile, Curve, CurveSeries

HISTOGRAM_BINS, MAP_BINS = 24, 20
RANGE = (0.5, 99.5)  # percentiles of the simulated numbers, with a margin on both sides
EVERY = -1  # bin number that means all showers


@dataclass(frozen=True)
class ShowerCurve:
    """Means or shares over `x`, of simulated (`real`) and of generated showers, with their standard
    deviations. `bins`: of energy and angle, EVERY for all. `y`: of a map the second coordinate of
    each number.
    """

    name: str
    bins: tuple[int, int]
    x: Array
    real: Array
    real_error: Array
    generated: Array
    generated_error: Array
    y: Array = field(default_factory=lambda: np.empty(0))


def curves(reference: ShowerSample, generated: ShowerSample) -> list[ShowerCurve]:
    """The curves for every bin of energy and angle, and for all bins together. The reference
    showers define the bins.
    """
    energy, angle = bounds(reference)
    rows, generated_rows = (_rows(sample, energy, angle) for sample in (reference, generated))
    grids = _grids(reference.features, generated.features)
    in_bins = []
    for bins in rows:
        if len(rows[bins]) and len(generated_rows[bins]):
            features = reference.features.select(rows[bins])
            of_generated = generated.features.select(generated_rows[bins])
            in_bins += [_curve(name, bins, features, of_generated, grids) for name in grids]
    return [
        *in_bins,
        _matrix(reference.features, generated.features),
        *([_angle_map(reference, generated)] if len(angle) else []),
    ]


def single_energy_curves(reference: ShowerSample, generated: ShowerSample) -> list[ShowerCurve]:
    """The curves of showers with a single energy: profiles, spectrum and distributions."""
    grids = _grids(reference.features, generated.features)
    names = [name for name in grids if name not in _RESPONSES]
    sides = (reference.features, generated.features)
    return [_curve(name, (EVERY, EVERY), *sides, grids) for name in names]


def _matrix(reference: Features, generated: Features) -> ShowerCurve:
    """The correlations of the layer sums of all showers, row after row; x: places in the flat
    matrix. Without errors.
    """
    sides = [scores.layer_correlations(features).reshape(-1) for features in (reference, generated)]
    x, zeros = np.arange(len(sides[0]), dtype=np.float64), np.zeros(len(sides[0]))
    return ShowerCurve("layers", (EVERY, EVERY), x, sides[0], zeros, sides[1], zeros)


def _angle_map(reference: ShowerSample, generated: ShowerSample) -> ShowerCurve:
    """Shares of all showers by requested angle (x) and measured angle (y), rad; for reference
    showers both are measured. Angles beyond the reference's range are in no bin, so shares can add
    up to less than 1.
    """
    angles = reference.requested_angle
    edges = np.linspace(angles.min(), angles.max() + 1e-9, MAP_BINS + 1)
    x, y = np.meshgrid(*[(edges[1:] + edges[:-1]) / 2.0] * 2, indexing="ij")
    sides = [
        np.histogram2d(sample.requested_angle, sample.features.angle, [edges, edges])[0].reshape(-1)
        / len(sample)
        for sample in (reference, generated)
    ]
    zeros, bins = np.zeros(len(sides[0])), (EVERY, EVERY)
    return ShowerCurve(
        "angle_map", bins, x.reshape(-1), sides[0], zeros, sides[1], zeros, y.reshape(-1)
    )


def bounds(reference: ShowerSample) -> tuple[Array, Array]:
    """Edges of the bins of incident energy (GeV) and of the angle (rad), empty without angles."""
    energy = scores.edges(reference.features.energy_gev, scores.ENERGY_BINS)
    angles = reference.requested_angle
    if np.isnan(angles).any():
        return energy, np.empty(0)
    return energy, scores.edges(angles, scores.ANGLE_BINS)


def _rows(
    showers: ShowerSample, energy: Array, angle: Array
) -> dict[tuple[int, int], NDArray[np.int64]]:
    everything = np.arange(len(showers))
    by_energy = [everything, *binned(showers.features.energy_gev, energy)]
    by_angle = [everything, *(binned(showers.requested_angle, angle) if len(angle) else ())]
    return {
        (energy_bin, angle_bin): np.intersect1d(in_energy, in_angle)
        for energy_bin, in_energy in enumerate(by_energy, EVERY)
        for angle_bin, in_angle in enumerate(by_angle, EVERY)
    }


def _peak(axis: int, features: Features) -> Array:
    return features.peak[:, axis]


def _moment(order: int, axis: int, features: Features) -> Array:
    """A moment in cells: the mean place, or the square or cubic root of a central moment."""
    moment = features.moments[:, axis, order - 1]
    return moment if order == 1 else np.asarray(np.sqrt(moment) if order == 2 else np.cbrt(moment))


# Distributions: name → its number of each shower.
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
# Means over the incident energy: name → the number of each shower.
_RESPONSES: Mapping[str, Callable[[Features], Array]] = {
    "sampling_fraction": lambda features: features.sampling_fraction,
    "read_energy": lambda features: features.read_gev / features.energy_gev,
}


def _grids(reference: Features, generated: Features) -> dict[str, Array]:
    """Name of each curve → its x: numbers of cells from 1, bins of energies, or bins of a number
    that hold both samples.
    """
    places: dict[str, Array] = {
        f"along_{axis}": np.arange(profile.shape[1], dtype=np.float64) + 1.0
        for axis, profile in reference.profiles.items()
    }
    energies = scores.edges(reference.energy_gev, 2 * scores.ENERGY_BINS)
    sides = (reference, generated)
    responses = {name: energies for name, read in _RESPONSES.items() if _is_measured(read, *sides)}
    numbers = {
        name: _edges_of(name, read(reference), read(generated), reference)
        for name, read in _NUMBERS.items()
        if _is_measured(read, *sides)
    }
    return {**places, **responses, "spectrum": np.empty(0), **numbers}


def _is_measured(read: Callable[[Features], Array], *samples: Features) -> bool:
    return not any(np.isnan(read(sample)).any() for sample in samples)


def _edges_of(name: str, numbers: Array, generated: Array, reference: Features) -> Array:
    """The bins of a number: whole cells, a probability from 0 to 1, else the range of the
    reference, or of both samples for outputs of a network.
    """
    if name.startswith("peak_"):
        cells = reference.profiles[name.removeprefix("peak_")].shape[1]
        return np.arange(cells + 1, dtype=np.float64) + 0.5
    if name == "belief":
        return np.linspace(0.0, 1.0, HISTOGRAM_BINS + 1)
    if name == "read_error":
        numbers = np.concatenate([numbers, generated])
    low, high = np.percentile(numbers, RANGE)
    margin = 0.25 * (high - low) or 0.5 * max(abs(high), 1e-6)
    return np.asarray(np.linspace(low - margin, high + margin, HISTOGRAM_BINS + 1), np.float64)


def _curve(
    name: str,
    bins: tuple[int, int],
    reference: Features,
    generated: Features,
    grids: Mapping[str, Array],
) -> ShowerCurve:
    grid, both = grids[name], (reference, generated)
    middles = (grid[1:] + grid[:-1]) / 2.0
    if name in _NUMBERS:
        x, sides = middles, [_shares(_NUMBERS[name](side), grid) for side in both]
    elif name in _RESPONSES:
        read = _RESPONSES[name]
        x, sides = middles, [_means_in_bins(read(side), side.energy_gev, grid) for side in both]
    elif name == "spectrum":
        x = 1e3 * np.sqrt(SPECTRUM_EDGES[1:] * SPECTRUM_EDGES[:-1])  # MeV
        sides = [_means(side.spectrum) for side in both]
    else:
        x, sides = grid, [_means(side.profiles[name.removeprefix("along_")]) for side in both]
    return ShowerCurve(name, bins, x, *sides[0], *sides[1])


def _means(rows: Array) -> tuple[Array, Array]:
    """Mean of each column of (N, K) and its standard error."""
    return rows.mean(axis=0), rows.std(axis=0) / math.sqrt(len(rows))


def _shares(numbers: Array, grid: Array) -> tuple[Array, Array]:
    """Share of the showers in each bin; error of counting. Numbers beyond the bins do not count."""
    counts = np.histogram(numbers, grid)[0]
    return counts / len(numbers), np.sqrt(counts) / len(numbers)


def _means_in_bins(numbers: Array, by: Array, grid: Array) -> tuple[Array, Array]:
    """The mean and the standard error of the numbers in each bin of `by`; NaN for an empty bin."""
    in_bins = [numbers[rows] for rows in binned(by, grid)]
    means = [values.mean() if len(values) else math.nan for values in in_bins]
    errors = [
        values.std() / math.sqrt(len(values)) if len(values) else math.nan for values in in_bins
    ]
    return np.asarray(means), np.asarray(errors)


# ---- in an answer --------------------------------------------------------------------------------

MOST_CELLS = 1_500  # of a stored shower; a simulated one of 100 GeV hits about 800
FAINTEST_GEV = 1e-5
DIGITS, DIGITS_OF_ERRORS = 5, 3


def stored_curve(curve: ShowerCurve, energy: Array, angle: Array) -> Curve:
    """`energy`, `angle`: the edges of the bins."""
    bins = {"energy": _range(energy, curve.bins[0]), "angle": _range(angle, curve.bins[1])}
    sides = (
        ("real", curve.real, curve.real_error),
        ("generated", curve.generated, curve.generated_error),
    )
    return Curve(
        name=curve.name,
        x=_rounded(curve.x),
        y=_rounded(curve.y),
        series=[
            CurveSeries(
                name=side, values=_rounded(values), error=_rounded(errors, DIGITS_OF_ERRORS)
            )
            for side, values, errors in sides
        ],
        facts={name: limits for name, limits in bins.items() if limits is not None},
    )


def _range(edges: Array, number: int) -> list[float] | None:
    return None if number < 0 else [float(edges[number]), float(edges[number + 1])]


def _rounded(numbers: NDArray[np.floating], digits: int = DIGITS) -> list[float]:
    return [float(f"{number:.{digits}g}") for number in numbers.tolist()]


def example_showers(reference: ShowerSample, generated: ShowerSample) -> Iterator[ArrayFile]:
    """A simulated and a generated shower in the middle of each bin of energy and angle."""
    for pair, row in enumerate(_middles(reference)):
        yield from stored_showers(pair, row, reference, generated)


def stored_showers(
    pair: int, row: int, reference: ShowerSample, generated: ShowerSample
) -> Iterator[ArrayFile]:
    """The simulated and the generated shower of one row, for the same energy and angle: their
    brightest cells in MeV. The fact `share` is their share of the shower's energy.
    """
    angle = (
        None if np.isnan(reference.requested_angle[row]) else float(reference.requested_angle[row])
    )
    for side, showers in (("real", reference), ("generated", generated)):
        cells = showers.cells_gev[row].reshape(-1)
        brightest = np.argsort(cells)[::-1][:MOST_CELLS]
        brightest = np.sort(brightest[cells[brightest] > FAINTEST_GEV])
        total = float(cells.sum())
        yield ArrayFile(
            name=side,
            places=brightest.tolist(),
            values=_rounded(cells[brightest] * 1e3),
            facts={
                "pair": pair,
                "energy_gev": float(reference.features.energy_gev[row]),
                "angle": angle,
                "share": float(cells[brightest].sum()) / total if total else 1.0,
            },
        )


def _middles(reference: ShowerSample) -> list[int]:
    """For each bin of energy and angle, the row nearest to the middle of both."""
    energies, angles = bounds(reference)
    by_angle = (
        binned(reference.requested_angle, angles) if len(angles) else [np.arange(len(reference))]
    )
    middles = []
    for energy_bin, in_energy in enumerate(binned(reference.features.energy_gev, energies)):
        for angle_bin, in_angle in enumerate(by_angle):
            rows = np.intersect1d(in_energy, in_angle)
            if len(rows):
                away = _from_middle(reference.features.energy_gev[rows], energies, energy_bin)
                if len(angles):
                    away += _from_middle(reference.requested_angle[rows], angles, angle_bin)
                middles.append(int(rows[away.argmin()]))
    return middles


def _from_middle(numbers: Array, edges: Array, place: int) -> Array:
    """Distance to the middle of a bin, in widths of it."""
    if len(edges) < 2:
        return np.zeros(len(numbers))
    low, high = edges[place], edges[place + 1]
    return np.abs(numbers - (low + high) / 2.0) / max(high - low, 1e-9)
