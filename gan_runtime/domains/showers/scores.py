"""Scores of a sample of showers against a reference sample of simulated ones.

0 is best, except for the similarity and the AUC.

Source: github.com/svalleco/3Dgan and recardoso/ISC_HPC_3DGAN (analysis). Bins of the incident
energy hold equally many showers; the authors use ± 5 GeV around a few energies, with ten thousand
showers each.
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
from gan_runtime.domains.showers.score_metrics import Estimate

ENERGY_BINS, ANGLE_BINS = 5, 3
WINDOW = 7  # cells along each side in which similarity is measured
DATA_RANGE = 1e-4  # of the similarity, GeV (authors: L = 1e-4)
PAIRS = 60


def edges(numbers: Array, count: int) -> Array:
    """(count + 1,) from the least to the largest number, with equally many between two; fewer
    where numbers repeat, at least 2.
    """
    ends = np.unique(np.quantile(numbers, np.linspace(0.0, 1.0, count + 1)))
    return ends if len(ends) > 1 else np.append(ends, np.nextafter(ends, np.inf))


def binned(numbers: Array, bounds: Array) -> list[NDArray[np.int64]]:
    """The rows in each bin; outliers count in the first or the last bin."""
    places = np.clip(np.searchsorted(bounds, numbers, side="right") - 1, 0, max(0, len(bounds) - 2))
    return [np.flatnonzero(places == place) for place in range(max(1, len(bounds) - 1))]


def pairs(reference: Features, other: Features, bounds: Array) -> list[tuple[Features, Features]]:
    """Both samples in each bin of the incident energy that holds some of both."""
    bins = zip(binned(reference.energy_gev, bounds), binned(other.energy_gev, bounds), strict=True)
    return [
        (reference.select(rows), other.select(other_rows))
        for rows, other_rows in bins
        if len(rows) and len(other_rows)
    ]


def sampling_fraction_error(reference: Features, other: Features, bounds: Array) -> Estimate:
    """(i): mean over the energy bins of |⟨SF⟩ - ⟨SF'⟩| / ⟨SF⟩, SF = visible / incident energy.

    Error: of the means, std/√N each.
    """
    errors, variances = [], []
    for features, other_features in pairs(reference, other, bounds):
        first, second = features.sampling_fraction, other_features.sampling_fraction
        errors.append(abs(first.mean() - second.mean()) / first.mean())
        variances.append(
            (first.var() / len(first) + second.var() / len(second)) / first.mean() ** 2
        )
    return Estimate(float(np.mean(errors)), math.sqrt(sum(variances)) / len(errors))


def moments_error(reference: Features, other: Features, bounds: Array) -> Estimate:
    """Of (ii): relative error of the mean first and second moments, over three axes and the bins.

    A first moment that is 0 on average, as around a beam, is compared with the width.
    """
    errors = []
    for both in pairs(reference, other, bounds):
        first, second = (side.moments[:, :, :2].mean(axis=0) for side in both)  # (3, 2)
        scale = np.maximum(np.abs(first[:, 0]), np.sqrt(first[:, 1]))
        errors.append(_relative(first, second, np.stack([scale, first[:, 1]], axis=1)))
    return Estimate(float(np.mean(errors)))


def profile_error(reference: Features, other: Features, bounds: Array) -> Estimate:
    """Of (ii) and (iii): |S - S'| / S of the mean sums along x, y and z, over their cells, the axes
    and the bins. Far from the shower S is small, so that the tails count as much as the core.
    """
    errors = []
    for features, other_features in pairs(reference, other, bounds):
        for axis, profile in features.profiles.items():
            first, second = profile.mean(axis=0), other_features.profiles[axis].mean(axis=0)
            errors.append(_relative(first, second, first))
    return Estimate(float(np.mean(errors)))


def angle_error(reference: Features, other: Features, requested: Array) -> Estimate:
    """Of (ii): |⟨a⟩ - ⟨a'⟩| / ⟨a⟩ of the measured angles, over bins of the angle; NaN without
    angles. `requested`: of the others (M,). The authors compare shower by shower; means also exist
    for two reference samples, the floor.
    """
    if np.isnan(reference.angle).any():
        return Estimate(math.nan)
    bounds = edges(reference.angle, ANGLE_BINS)
    bins = zip(binned(reference.angle, bounds), binned(requested, bounds), strict=True)
    means = [
        (reference.angle[rows].mean(), other.angle[other_rows].mean())
        for rows, other_rows in bins
        if len(rows) and len(other_rows)
    ]
    return Estimate(float(np.mean([abs(first - second) / first for first, second in means])))


def total_error(parts: tuple[Estimate, ...]) -> Estimate:
    """(ii): the sum of the terms that are numbers."""
    return Estimate(sum(part.value for part in parts if not math.isnan(part.value)))


def profile_distance(reference: Features, other: Features, axis: str) -> Estimate:
    """(iii): Kolmogorov-Smirnov distance of the mean sums along an axis, as distributions
    over its cells: 0 to 1.
    """
    first, second = (features.profiles[axis].mean(axis=0) for features in (reference, other))
    if not first.sum() or not second.sum():
        return Estimate(1.0)
    differences = np.cumsum(first) / first.sum() - np.cumsum(second) / second.sum()
    return Estimate(float(np.abs(differences).max()))


def correlation_error(reference: Features, other: Features) -> Estimate:
    """Σ (C - C')² / (n (n - 1) / 2) below the diagonal of both correlation matrices, of n =
    12 features.
    """
    first, second = (_correlations(correlated(features)) for features in (reference, other))
    below = np.tril_indices(len(first), -1)
    return Estimate(float(np.mean((first[below] - second[below]) ** 2)))


def layer_correlations(features: Features) -> Array:
    """(Z, Z): Pearson's correlations of the layer sums, each over the incident energy; 0 for
    a layer that is always empty.
    """
    return _correlations(features.along_z / features.energy_gev[:, np.newaxis])


def layer_correlation_error(reference: Features, other: Features) -> Estimate:
    """Σ (artanh C - artanh C')² / (Z (Z - 1) / 2) below the diagonal of both matrices of the
    layer sums, |C| at most 0.999.
    """
    first, second = (
        np.clip(layer_correlations(features), -0.999, 0.999) for features in (reference, other)
    )
    below = np.tril_indices(len(first), -1)
    return Estimate(float(np.mean((np.arctanh(first[below]) - np.arctanh(second[below])) ** 2)))


def similarity(first: NDArray[np.floating], second: NDArray[np.floating]) -> Estimate:
    """(iv): mean structural similarity (Wang et al. 2004, equation 13) of unrelated showers (N, X,
    Y, Z) in GeV, 1 for equal ones. More than for simulated showers means too little variety.
    """
    count = min(PAIRS, len(first), len(second) - 1)
    similarities = [_similarity(first[row], second[row + 1]) for row in range(count)]
    return Estimate(float(np.mean(similarities)), float(np.std(similarities) / math.sqrt(count)))


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


def _relative(first: Array, second: Array, scale: Array) -> float:
    """Mean of |first - second| / scale where the scale is above 0."""
    filled = scale > 0.0
    return float((np.abs(first - second)[filled] / scale[filled]).mean()) if filled.any() else 0.0


def _correlations(rows: Array) -> Array:
    """Pearson's, (F, F); 0 for a feature that does not vary."""
    offsets = rows - rows.mean(axis=0)
    norms = np.sqrt((offsets**2).sum(axis=0))
    norms[norms == 0.0] = 1.0
    return np.asarray((offsets / norms).T @ (offsets / norms))


# ---- classifiers ---------------------------------------------------------------------------------
# How well a small network separates both samples: the area under its ROC curve, 0.5 where it can
# only guess. The CaloChallenge (arXiv:2410.21611, section 5.3) trains it on all cells (low-level)
# and on layer energies, centers and widths (high-level). This one is smaller, as are its samples:
# an AUC near 0.5 here is no proof there.

FOLDS = 3
UNITS, ROUNDS = 64, 40
# of both samples together: 120 MB, 7,000 showers of the tiny grid and 460 of the full one
MOST_NUMBERS = 30_000_000


def auc(reference: NDArray[np.floating], other: NDArray[np.floating], seed: int = 0) -> Estimate:
    """Mean over FOLDS test folds, and their standard deviation. Rows (N, F), (M, F); of too large
    samples the first rows.
    """
    rows = max(2 * FOLDS, min(len(reference), len(other), MOST_NUMBERS // (2 * reference.shape[1])))
    numbers = np.concatenate([reference[:rows], other[:rows]]).astype(np.float32)
    labels = np.concatenate([np.ones(len(reference[:rows])), np.zeros(len(other[:rows]))])
    areas = []
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    for train, test in folds.split(numbers, labels):
        network = make_pipeline(
            StandardScaler(),
            MLPClassifier(
                (UNITS,), alpha=1e-3, early_stopping=True, max_iter=ROUNDS, random_state=seed
            ),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # training stops after ROUNDS
            network.fit(numbers[train], labels[train])
        areas.append(roc_auc_score(labels[test], network.predict_proba(numbers[test])[:, 1]))
    return Estimate(float(np.mean(areas)), float(np.std(areas, ddof=1)))


# ---- samples -------------------------------------------------------------------------------------

OnStage = Callable[[str], None]


@dataclass(frozen=True)
class ShowerSample:
    """Showers (N, X, Y, Z) in GeV and their features. `requested_angle`: requested, rad (N,)."""

    cells_gev: NDArray[np.float32]
    features: Features
    requested_angle: Array

    def __len__(self) -> int:
        return len(self.features)


def sample(
    cells_gev: NDArray[np.float32],
    energy_gev: Array,
    requested_angle: Array | None,
    periodic: tuple[int, ...],
) -> ShowerSample:
    """A sample with measured features. `requested_angle`: None for a data set without angles."""
    features = features_of(cells_gev, energy_gev, periodic, has_angle=requested_angle is not None)
    return ShowerSample(
        cells_gev, features, features.angle if requested_angle is None else requested_angle
    )


def with_reading(showers: ShowerSample, belief: Array, energy_gev: Array) -> ShowerSample:
    """The same showers with the discriminator's outputs (N,): the probability that they are
    simulated, and their incident energy.
    """
    return replace(showers, features=replace(showers.features, belief=belief, read_gev=energy_gev))


def compared(
    reference: ShowerSample, other: ShowerSample, on_stage: OnStage = lambda _: None
) -> dict[str, Estimate]:
    """Every score of `other` against `reference`, by name.

    On one core: the matrices are small, and next to a training several threads wait for each other
    longer than they compute.
    """
    with threadpool_limits(1):
        return _compared(reference, other, on_stage)


def _compared(
    reference: ShowerSample, other: ShowerSample, on_stage: OnStage
) -> dict[str, Estimate]:
    on_stage("scores of the authors")
    bounds = edges(reference.features.energy_gev, ENERGY_BINS)
    both = first, second = reference.features, other.features
    terms = (
        moments_error(*both, bounds),
        profile_error(*both, bounds),
        angle_error(*both, other.requested_angle),
    )
    scores = {
        "sampling_fraction": sampling_fraction_error(*both, bounds),
        "total": total_error(terms),
        **dict(zip(("moments", "profiles", "angle"), terms, strict=True)),
        **{f"profile_{axis}": profile_distance(*both, axis) for axis in "xyz"},
        "correlations": correlation_error(*both),
        "layers": layer_correlation_error(*both),
        "similarity": similarity(other.cells_gev, other.cells_gev),
    }
    on_stage("distances of the features")
    layers = x, y = high_level(first), high_level(second)
    separations = [distances.separation(x[:, place], y[:, place]) for place in range(1, x.shape[1])]
    scores |= {
        "challenge_fpd": _thousandfold(challenge_fpd(first.challenge, second.challenge)),
        "challenge_kpd": _thousandfold(challenge_kpd(first.challenge, second.challenge)),
        "fpd": _thousandfold(distances.fpd(*layers)),
        "kpd": _thousandfold(distances.kpd(*layers)),
        "separation": Estimate(float(np.mean(separations))),
    }
    on_stage("training classifiers")
    return scores | {
        "auc_high": auc(*layers),
        "auc_low": auc(low_level(reference), low_level(other)),
    }


def low_level(showers: ShowerSample) -> NDArray[np.float32]:
    """(N, 1 + X·Y·Z): log10 of the incident energy in MeV, and each cell over the incident
    energy.
    """
    energy = showers.features.energy_gev[:, np.newaxis].astype(np.float32)
    cells = showers.cells_gev.reshape(len(showers), -1) / energy
    return np.concatenate([np.log10(energy * 1e3), cells], axis=1)


def _thousandfold(value: Estimate) -> Estimate:
    return Estimate(value.value * 1e3, value.error * 1e3)
