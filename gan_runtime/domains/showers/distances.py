"""Distances between two samples of features: FPD and KPD of Kansal et al. 2022 (arXiv:2211.10295)
for some thousand showers and as the CaloChallenge computes them, and the separation power.

Features are divided by the largest absolute value in the reference sample, each by its own, as the
authors' package jetnet does.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import curve_fit

from gan_runtime.domains.showers.score_metrics import Estimate, fewest_showers

Array = NDArray[np.float64]
Counts = NDArray[np.int64]
Moments = tuple[Array, Array]  # mean (F,) and covariance (F, F)

POINTS, BATCHES = 5, 6  # sample sizes of the extrapolation, and draws of each
RESAMPLES = 20  # of both samples, for the error of an FPD
SMALLEST = 0.4  # smallest size, as a share of the sample (jetnet: 20,000 of 50,000)
KERNEL_BATCHES, KERNEL_ROWS = 10, 1_000
BINS = 50  # bins of a histogram for the separation power
PERCENTILES = (16.275, 83.725)  # one standard deviation of a normal distribution to each side


def scaled(reference: Array, other: Array) -> tuple[Array, Array]:
    """Both samples (N, F), (M, F), divided by the largest absolute value of each feature in the
    reference.
    """
    largest = np.abs(reference).max(axis=0)
    largest[largest == 0.0] = 1.0
    return reference / largest, other / largest


def frechet(first: Array, second: Array) -> float:
    """d² = |μ₁ - μ₂|² + Tr(Σ₁ + Σ₂ - 2 (Σ₁ Σ₂)^½) of the normal distributions with the means
    and covariances of both samples.
    """
    moments = [
        (sample.mean(axis=0), np.atleast_2d(np.cov(sample, rowvar=False)))
        for sample in (first, second)
    ]
    return frechet_of_moments(*moments)


def frechet_of_moments(first: Moments, second: Moments) -> float:
    """d² of two normal distributions, each a mean (F,) and a covariance (F, F)."""
    (mean, covariance), (other_mean, other_covariance) = first, second
    means = mean - other_mean
    root = _root(covariance)
    # Tr (Σ₁ Σ₂)^½ = Tr (Σ₁^½ Σ₂ Σ₁^½)^½, which is symmetric: its eigenvalues are real and not
    # negative.
    shared = np.sqrt(np.maximum(np.linalg.eigvalsh(root @ other_covariance @ root), 0.0)).sum()
    traces = np.trace(covariance), np.trace(other_covariance)
    return float(means @ means + traces[0] + traces[1] - 2.0 * shared)


def fpd(reference: Array, other: Array, seed: int = 0) -> Estimate:
    """The Fréchet physics distance, extrapolated to infinitely many showers; NaN for fewer than
    `fewest_showers`, where value and error are wrong (docs/metrics.md).
    """
    enough = min(len(reference), len(other)) >= fewest_showers(reference.shape[1])
    return extrapolated(reference, other, seed) if enough else Estimate(math.nan)


def extrapolated(reference: Array, other: Array, seed: int = 0) -> Estimate:
    """d² at several sample sizes n, and the intercept of a line in 1/n.

    d² of finite samples is too large by about c/n. Rows are drawn without repetition, so that the
    bias of a few thousand showers vanishes too; jetnet repeats rows, which keeps that of its
    50,000. Error: standard deviation of the intercept for resampled showers, so it covers other
    showers; features stay divided by the largest of the reference sample.
    """
    random = np.random.RandomState(seed)
    first, second = scaled(reference, other)
    value = _intercept(first, second, BATCHES, random)
    resampled = []
    for _ in range(RESAMPLES):
        x, y = (sample[random.choice(len(sample), len(sample))] for sample in (first, second))
        resampled.append(_intercept(x, y, 1, random))
    return Estimate(value, float(np.std(resampled, ddof=1)))


def kpd(reference: Array, other: Array, seed: int = 0) -> Estimate:
    """The kernel physics distance: the unbiased squared maximum mean discrepancy of k(x, y) = (xᵀy
    / F + 1)⁴, 0 on average for two samples of one distribution. Median over draws, and half of the
    range that holds 68% of them.
    """
    first, second = scaled(reference, other)
    random, draws = np.random.RandomState(seed), []
    rows = max(
        2, min(KERNEL_ROWS, len(first) // 2, len(second) // 2)
    )  # otherwise all draws would be equal
    for _ in range(KERNEL_BATCHES):
        x, y = (
            sample[random.choice(len(sample), rows, replace=False)] for sample in (first, second)
        )
        draws.append(mmd(x, y))
    low, high = np.percentile(draws, PERCENTILES)
    return Estimate(float(np.median(draws)), float(high - low) / 2.0)


def mmd(x: Array, y: Array, of_x: Counts | None = None, of_y: Counts | None = None) -> float:
    """With k(x, y) = (xᵀy / F + 1)⁴ (jetnet, _mmd_poly_quadratic_unbiased; the KID of images takes
    3, docs/metrics.md): MMD²_u = Σ_{i≠j} k(x_i, x_j) / n(n-1) + Σ_{i≠j} k(y_i, y_j) / m(m-1) - 2 Σ
    k(x_i, y_j) / nm (Gretton et al. 2012, lemma 6). `of_x`, `of_y`: how often each row is in its
    sample, (N,) and (M,); once each where they are left out.
    """

    def kernel(left: Array, right: Array) -> Array:
        products = left @ right.T  # 0.3 GB for 6,300 rows: changed in place
        products /= left.shape[1]
        products += 1.0
        for _ in range(2):  # faster than ** 4
            np.square(products, out=products)
        return np.asarray(products)

    def without_itself(sample: Array, counts: Array) -> float:
        among, count = kernel(sample, sample), counts.sum()
        return float((counts @ among @ counts - counts @ np.diag(among)) / (count * (count - 1)))

    xs, ys = (
        np.ones(len(sample)) if counts is None else counts.astype(float)
        for sample, counts in ((x, of_x), (y, of_y))
    )
    across = float(xs @ kernel(x, y) @ ys / (xs.sum() * ys.sum()))
    return without_itself(x, xs) + without_itself(y, ys) - 2.0 * across


def separation(reference: Array, other: Array, bins: int = BINS) -> float:
    """S² = ½ Σ (h₁ - h₂)² / (h₁ + h₂) of two samples (N,), (M,) of one number as histograms of sum
    1: 0 for equal ones, 1 for disjoint ones (CaloChallenge, arXiv:2410.21611). The bins cover both
    samples.
    """
    low, high = min(reference.min(), other.min()), max(reference.max(), other.max())
    if low == high:
        return 0.0
    first, second = (
        np.histogram(sample, bins, (low, high))[0] / len(sample) for sample in (reference, other)
    )
    both = first + second
    filled = both > 0
    return float(0.5 * ((first - second)[filled] ** 2 / both[filled]).sum())


def _root(covariance: Array) -> Array:
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def _intercept(first: Array, second: Array, batches: int, random: np.random.RandomState) -> float:
    """d² for n → ∞. `batches`: draws of each size."""
    count = min(len(first), len(second))
    sizes = np.unique(
        (1.0 / np.linspace(1.0 / (SMALLEST * count), 1.0 / count, POINTS)).astype(int)
    )
    distances = [
        np.mean([_of_draw(first, second, size, random) for _ in range(batches)]) for size in sizes
    ]
    return float(np.polyfit(1.0 / sizes, distances, 1)[1])


def _of_draw(first: Array, second: Array, size: int, random: np.random.RandomState) -> float:
    rows = [random.choice(len(sample), size, replace=False) for sample in (first, second)]
    return frechet(first[rows[0]], second[rows[1]])


# ---- CaloChallenge -------------------------------------------------------------------------------
# FPD and KPD of jetnet 0.2.5 (Kansal et al. 2022, arXiv:2211.10295), to its last digits, with the
# arguments of the CaloChallenge since May 2024: fpd(min_samples=10000), kpd(batch_size=10000). Rows
# are drawn with repetition from any sample, so the distance is that of the two samples: for N
# showers it is too large by about c / N, where c grows with the number of features. Compare it with
# its floor. Repeated rows are counted, not copied.

SEED = 42
FEWEST_DRAWN, MOST_DRAWN, CHALLENGE_POINTS, CHALLENGE_BATCHES = 10_000, 50_000, 10, 20  # of FPD
KERNEL_DRAWN, CHALLENGE_KERNEL_BATCHES = 10_000, 10  # of KPD
KERNEL_STRIDE = 1_000  # between seeds


def challenge_fpd(reference: Array, other: Array) -> Estimate:
    """d² of sizes with even steps in 1/n, and the intercept of a line through their means that
    neither falls nor begins below 0. Error: of the distance when both sets are resampled (jetnet:
    of the line alone).
    """
    first, second = scaled(reference, other)
    sizes = (1.0 / np.linspace(1.0 / FEWEST_DRAWN, 1.0 / MOST_DRAWN, CHALLENGE_POINTS)).astype(int)
    random = np.random.default_rng(SEED)
    means = [
        np.mean([_distance(first, second, int(size), random) for _ in range(CHALLENGE_BATCHES)])
        for size in sizes
    ]
    # The same search as jetnet's, which stops up to 0.2% before the least squares.
    (intercept, _), _ = curve_fit(_line, 1.0 / sizes, means, bounds=(0.0, np.inf))
    count = min(len(first), len(second))
    return Estimate(
        float(intercept),
        float(np.std([_distance(first, second, count, random) for _ in range(RESAMPLES)], ddof=1)),
    )


def challenge_kpd(reference: Array, other: Array) -> Estimate:
    """MMD² of 10,000 rows of each set, median of ten draws.

    Error: half of the range that holds 68% of ten draws of no more rows than there are (jetnet: of
    10,000).
    """
    first, second = scaled(reference, other)
    count = min(len(first), len(second))
    draws = _kernel_draws(first, second, KERNEL_DRAWN)
    spread = draws if count >= KERNEL_DRAWN else _kernel_draws(first, second, count)
    low, high = np.percentile(spread, PERCENTILES)
    return Estimate(float(np.median(draws)), float(high - low) / 2.0)


def _line(x: Array, intercept: float, slope: float) -> Array:
    return intercept + slope * x


def _distance(first: Array, second: Array, size: int, random: np.random.Generator) -> float:
    moments = [_moments(sample, _counts(sample, size, random), size) for sample in (first, second)]
    return frechet_of_moments(*moments)


def _kernel_draws(first: Array, second: Array, size: int) -> list[float]:
    draws = []
    for batch in range(CHALLENGE_KERNEL_BATCHES):
        random = np.random.default_rng(SEED + batch * KERNEL_STRIDE)
        (x, of_x), (y, of_y) = (
            _some(sample, _counts(sample, size, random)) for sample in (first, second)
        )
        draws.append(mmd(x, y, of_x, of_y))
    return draws


def _counts(sample: Array, size: int, random: np.random.Generator) -> Counts:
    """The number of times each row was drawn, (N,)."""
    return np.bincount(random.choice(len(sample), size=size), minlength=len(sample))


def _some(sample: Array, counts: Counts) -> tuple[Array, Counts]:
    return sample[counts > 0], counts[counts > 0]


def _moments(sample: Array, counts: Counts, size: int) -> Moments:
    """Mean and covariance of rows of which each counts so often."""
    mean = counts @ sample / size
    offsets = sample - mean
    return mean, (offsets * counts[:, np.newaxis]).T @ offsets / (size - 1)
