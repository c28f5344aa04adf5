"""Scores of a sample of showers beside a real one: those of the authors of 3DGAN.

0 is best in all of them but the similarity.

Source: github.com/svalleco/3Dgan and recardoso/ISC_HPC_3DGAN (analysis). Bins of the incident
energy hold equally many showers; the authors take ± 5 GeV around chosen energies, for which they
have ten thousand.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from gan_runtime.domains.showers import distances
from gan_runtime.domains.showers.distances import challenge_fpd, challenge_kpd
from gan_runtime.domains.showers.features import (
    Array,
    Features,
    correlated,
    features_of,
    high_level,
)
from gan_runtime.domains.showers.score_metrics import Value

ENERGY_BINS, ANGLE_BINS = 5, 3
WINDOW = 7  # cells along each side in which similarity is measured
DATA_RANGE = 1e-4  # of the similarity, GeV (authors: L = 1e-4)
PAIRS = 60


def edges(numbers: Array, count: int) -> Array:
    """(count + 1,) from the least to the largest number, with equally many between two; fewer
    where numbers repeat, at least 2.
    """
    different = np.unique(np.quantile(numbers, np.linspace(0.0, 1.0, count + 1)))
    return (
        different if len(different) > 1 else np.append(different, np.nextafter(different, np.inf))
    )


def binned(numbers: Array, bounds: Array) -> list[NDArray[np.int64]]:
    """The rows in each bin; what lies outside counts to the first or the last one."""
    places = np.clip(np.searchsorted(bounds, numbers, side="right") - 1, 0, max(0, len(bounds) - 2))
    return [np.flatnonzero(places == place) for place in range(max(1, len(bounds) - 1))]


def pairs(real: Features, other: Features, bounds: Array) -> list[tuple[Features, Features]]:
    """Both samples in each bin of the incident energy that holds some of both."""
    rows = zip(binned(real.energy_gev, bounds), binned(other.energy_gev, bounds), strict=True)
    return [(real.select(one), other.select(two)) for one, two in rows if len(one) and len(two)]


def sampling_fraction_error(real: Features, other: Features, bounds: Array) -> Value:
    """(i): mean over the energy bins of |⟨SF⟩ - ⟨SF'⟩| / ⟨SF⟩, SF = visible / incident energy.

    Error: of the means, std/√N each.
    """
    errors, variances = [], []
    for one, two in pairs(real, other, bounds):
        first, second = one.sampling_fraction, two.sampling_fraction
        errors.append(abs(first.mean() - second.mean()) / first.mean())
        variances.append(
            (first.var() / len(first) + second.var() / len(second)) / first.mean() ** 2
        )
    return Value(float(np.mean(errors)), math.sqrt(sum(variances)) / len(errors))


def moments_error(real: Features, other: Features, bounds: Array) -> Value:
    """Of (ii): relative error of the mean first and second moments, over three axes and the bins.

    A first moment that is 0 on average, as around a beam, is compared with the width.
    """
    found = []
    for one, two in pairs(real, other, bounds):
        mine, theirs = (
            one.moments[:, :, :2].mean(axis=0),
            two.moments[:, :, :2].mean(axis=0),
        )  # (3, 2)
        scale = np.stack([np.maximum(np.abs(mine[:, 0]), np.sqrt(mine[:, 1])), mine[:, 1]], axis=1)
        found.append(_relative(mine, theirs, scale))
    return Value(float(np.mean(found)))


def profile_error(real: Features, other: Features, bounds: Array) -> Value:
    """Of (ii) and (iii): |S - S'| / S of the mean sums along x, y and z, over their cells, the axes
    and the bins. Far from the shower S is small, so that the tails count as much as the core.
    """
    found = []
    for one, two in pairs(real, other, bounds):
        for axis, profile in one.profiles.items():
            mine, theirs = profile.mean(axis=0), two.profiles[axis].mean(axis=0)
            found.append(_relative(mine, theirs, mine))
    return Value(float(np.mean(found)))


def angle_error(real: Features, other: Features, asked: Array) -> Value:
    """Of (ii): |⟨a⟩ - ⟨a'⟩| / ⟨a⟩ of the angles measured on the images, over bins of the angle; NaN
    without angles. `asked`: what the others were to have (M,). The authors compare shower by
    shower; means can also be taken of two real samples, which is the floor.
    """
    if np.isnan(real.angle).any():
        return Value(math.nan)
    bounds = edges(real.angle, ANGLE_BINS)
    rows = zip(binned(real.angle, bounds), binned(asked, bounds), strict=True)
    means = [
        (real.angle[one].mean(), other.angle[two].mean())
        for one, two in rows
        if len(one) and len(two)
    ]
    return Value(float(np.mean([abs(mine - theirs) / mine for mine, theirs in means])))


def total_error(parts: tuple[Value, ...]) -> Value:
    """(ii): the sum of the terms that there are."""
    return Value(sum(part.value for part in parts if not math.isnan(part.value)))


def profile_distance(real: Features, other: Features, axis: str) -> Value:
    """(iii): Kolmogorov-Smirnov distance of the mean sums along an axis, as distributions
    over its cells: 0 to 1.
    """
    one, two = (features.profiles[axis].mean(axis=0) for features in (real, other))
    if not one.sum() or not two.sum():
        return Value(1.0)
    return Value(float(np.abs(np.cumsum(one) / one.sum() - np.cumsum(two) / two.sum()).max()))


def correlation_error(real: Features, other: Features) -> Value:
    """Σ (C - C')² / (n (n - 1) / 2) below the diagonal of both correlation matrices, of n =
    12 features.
    """
    one, two = (_correlations(correlated(features)) for features in (real, other))
    below = np.tril_indices(len(one), -1)
    return Value(float(np.mean((one[below] - two[below]) ** 2)))


def layer_correlations(features: Features) -> Array:
    """(Z, Z): Pearson's correlations of the layer sums, each over the incident energy; 0 for
    a layer that is always empty.
    """
    return _correlations(features.along_z / features.energy_gev[:, np.newaxis])


def layer_correlation_error(real: Features, other: Features) -> Value:
    """Σ (artanh C - artanh C')² / (Z (Z - 1) / 2) below the diagonal of both matrices of the
    layer sums, |C| at most 0.999.
    """
    one, two = (np.clip(layer_correlations(features), -0.999, 0.999) for features in (real, other))
    below = np.tril_indices(len(one), -1)
    return Value(float(np.mean((np.arctanh(one[below]) - np.arctanh(two[below])) ** 2)))


def similarity(first: NDArray[np.floating], second: NDArray[np.floating]) -> Value:
    """(iv): mean structural similarity (Wang et al.

    2004, equation 13) of showers that have nothing to do with each other: 1 for equal ones. Showers
    (N, X, Y, Z) in GeV. Among generated showers, more than among real ones means too little
    variety.
    """
    count = min(PAIRS, len(first), len(second) - 1)
    found = [_similarity(first[row], second[row + 1]) for row in range(count)]
    return Value(float(np.mean(found)), float(np.std(found) / math.sqrt(count)))


def _similarity(x: NDArray[np.floating], y: NDArray[np.floating]) -> float:
    """SSIM = (2 μx μy + c1) (2 σxy + c2) / ((μx² + μy² + c1) (σx² + σy² + c2)), in windows,
    c1 = (0.01 L)², c2 = (0.03 L)².
    """
    x, y = x.astype(np.float64), y.astype(np.float64)
    mean_x, mean_y, xx, yy, xy = (
        ndimage.uniform_filter(image, WINDOW, mode="constant")
        for image in (x, y, x * x, y * y, x * y)
    )
    first, second = (0.01 * DATA_RANGE) ** 2, (0.03 * DATA_RANGE) ** 2
    above = (2 * mean_x * mean_y + first) * (2 * (xy - mean_x * mean_y) + second)
    below = (mean_x**2 + mean_y**2 + first) * (xx - mean_x**2 + yy - mean_y**2 + second)
    return float((above / below).mean())


def _relative(mine: Array, theirs: Array, scale: Array) -> float:
    """Mean of |mine - theirs| / scale where there is a scale."""
    filled = scale > 0.0
    return float((np.abs(mine - theirs)[filled] / scale[filled]).mean()) if filled.any() else 0.0


def _correlations(rows: Array) -> Array:
    """Pearson's, (F, F); 0 for a feature that does not vary."""
    offsets = rows - rows.mean(axis=0)
    norms = np.sqrt((offsets**2).sum(axis=0))
    norms[norms == 0.0] = 1.0
    return np.asarray((offsets / norms).T @ (offsets / norms))


# ---- classifiers ---------------------------------------------------------------------------------
# How well a small network tells real showers from generated ones: the area under its ROC curve, 0.5
# where it can only guess.
#
# The CaloChallenge (arXiv:2410.21611, section 5.3) trains such a network on all cells (low-level)
# and on layer energies, centers and widths (high-level). This one is smaller, and so are its
# samples: an AUC near 0.5 here is no proof there. Needs scikit-learn.

FOLDS = 3
UNITS, ROUNDS = 64, 40
# of both samples together: 120 MB, 7,000 showers of the tiny grid and 460 of the full one
MOST_NUMBERS = 30_000_000


def auc(real: NDArray[np.floating], other: NDArray[np.floating], seed: int = 0) -> Value:
    """Of rows that it was not trained on: mean over FOLDS folds, each once left out, and their
    standard deviation. Rows (N, F), (M, F); of samples that are too large the first rows.
    """
    rows = max(2 * FOLDS, min(len(real), len(other), MOST_NUMBERS // (2 * real.shape[1])))
    numbers = np.concatenate([real[:rows], other[:rows]]).astype(np.float32)
    is_real = np.concatenate([np.ones(len(real[:rows])), np.zeros(len(other[:rows]))])
    areas = []
    for train, left_out in StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(
        numbers, is_real
    ):
        network = make_pipeline(
            StandardScaler(),
            MLPClassifier(
                (UNITS,), alpha=1e-3, early_stopping=True, max_iter=ROUNDS, random_state=seed
            ),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # it ends after ROUNDS in any case
            network.fit(numbers[train], is_real[train])
        areas.append(
            roc_auc_score(is_real[left_out], network.predict_proba(numbers[left_out])[:, 1])
        )
    return Value(float(np.mean(areas)), float(np.std(areas, ddof=1)))


# ---- comparison ----------------------------------------------------------------------------------
# A sample of showers beside a real one: every score. Curves: curves.py.
#
# What scores are called, and how they are read, stands in domains/showers/score_metrics.py.

Told = Callable[[str], None]  # what is computed now


@dataclass(frozen=True)
class ShowerSample:
    """Showers (N, X, Y, Z) in GeV and what is measured on them.

    `asked_angle`: what they were to have, rad (N,).
    """

    cells_gev: NDArray[np.float32]
    features: Features
    asked_angle: Array

    def __len__(self) -> int:
        return len(self.features)


def sample(
    cells_gev: NDArray[np.float32],
    energy_gev: Array,
    asked_angle: Array | None,
    periodic: tuple[int, ...],
) -> ShowerSample:
    """With the features measured. `asked_angle`: None where the data set knows no angle."""
    features = features_of(cells_gev, energy_gev, periodic, has_angle=asked_angle is not None)
    return ShowerSample(cells_gev, features, features.angle if asked_angle is None else asked_angle)


def with_reading(showers: ShowerSample, belief: Array, energy_gev: Array) -> ShowerSample:
    """The same showers with what a judging network reads from them: that they are real, 0 to
    1, and their incident energy (N,).
    """
    return replace(showers, features=replace(showers.features, belief=belief, read_gev=energy_gev))


def compared(
    real: ShowerSample, other: ShowerSample, told: Told = lambda _: None
) -> dict[str, Value]:
    """Every score of `other` beside `real`, by name.

    A sample in which nothing is left gives what the formulas give.

    On one core: the matrices are small, and beside a training several threads wait for each other
    longer than they compute.
    """
    with threadpool_limits(1):
        return _compared(real, other, told)


def _compared(real: ShowerSample, other: ShowerSample, told: Told) -> dict[str, Value]:
    told("scores of the authors")
    bounds = edges(real.features.energy_gev, ENERGY_BINS)
    mine, theirs = real.features, other.features
    terms = (
        moments_error(mine, theirs, bounds),
        profile_error(mine, theirs, bounds),
        angle_error(mine, theirs, other.asked_angle),
    )
    found = {
        "sampling_fraction": sampling_fraction_error(mine, theirs, bounds),
        "total": total_error(terms),
        **dict(zip(("moments", "profiles", "angle"), terms, strict=True)),
        **{f"profile_{axis}": profile_distance(mine, theirs, axis) for axis in "xyz"},
        "correlations": correlation_error(mine, theirs),
        "layers": layer_correlation_error(mine, theirs),
        "similarity": similarity(other.cells_gev, other.cells_gev),
    }
    one, two = high_level(mine), high_level(theirs)
    told("distances of the features")
    found |= {
        "challenge_fpd": _thousandfold(challenge_fpd(mine.challenge, theirs.challenge)),
        "challenge_kpd": _thousandfold(challenge_kpd(mine.challenge, theirs.challenge)),
    }
    separations = [
        distances.separation(one[:, place], two[:, place]) for place in range(1, one.shape[1])
    ]
    found |= {
        "fpd": _thousandfold(distances.fpd(one, two)),
        "kpd": _thousandfold(distances.kpd(one, two)),
        "separation": Value(float(np.mean(separations))),
    }
    told("training classifiers")
    return found | {"auc_high": auc(one, two), "auc_low": auc(low_level(real), low_level(other))}


def low_level(showers: ShowerSample) -> NDArray[np.float32]:
    """(N, 1 + X·Y·Z): log10 of the incident energy in MeV, and each cell over the incident
    energy.
    """
    energy = showers.features.energy_gev[:, np.newaxis].astype(np.float32)
    cells = showers.cells_gev.reshape(len(showers), -1) / energy
    return np.concatenate([np.log10(energy * 1e3), cells], axis=1)


def _thousandfold(found: Value) -> Value:
    return Value(found.value * 1e3, found.error * 1e3)
