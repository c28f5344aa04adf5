"""Distances between two samples of features: FPD and KPD of Kansal et al. 2022 (arXiv:2211.10295)
for some thousand showers, and the separation power. Those of the CaloChallenge are in
challenge_distances.py.

Features are divided by the largest absolute value that the real sample has, each by its own, as the
authors' package jetnet does.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import curve_fit

from gan_runtime.domains.showers.score_metrics import Value, fewest_showers

Array = NDArray[np.float64]
Counts = NDArray[np.int64]
Moments = tuple[Array, Array]  # mean (F,) and covariance (F, F)

POINTS, BATCHES = 5, 6  # sample sizes of the extrapolation, and draws of each
RESAMPLES = 20  # of both samples, for the error of an FPD
SMALLEST = 0.4  # of them, as a share of the sample (jetnet: 20,000 of 50,000)
KERNEL_BATCHES, KERNEL_ROWS = 10, 1_000
BINS = 50  # of a histogram for the separation power
PERCENTILES = (16.275, 83.725)  # one standard deviation of a normal distribution to each side


def scaled(real: Array, other: Array) -> tuple[Array, Array]:
    """Both samples (N, F), (M, F), divided by the largest absolute value of each feature
    among the real ones.
    """
    largest = np.abs(real).max(axis=0)
    largest[largest == 0.0] = 1.0
    return real / largest, other / largest


def frechet(first: Array, second: Array) -> float:
    """d² = |μ₁ - μ₂|² + Tr(Σ₁ + Σ₂ - 2 (Σ₁ Σ₂)^½) of the normal distributions with the means
    and covariances of both samples.
    """
    one, two = (
        (sample.mean(axis=0), np.atleast_2d(np.cov(sample, rowvar=False)))
        for sample in (first, second)
    )
    return frechet_of_moments(one, two)


def frechet_of_moments(first: Moments, second: Moments) -> float:
    """d² of two normal distributions, each a mean (F,) and a covariance (F, F)."""
    (mean, one), (other_mean, two) = first, second
    means = mean - other_mean
    root = _root(one)
    # Tr (Σ₁ Σ₂)^½ = Tr (Σ₁^½ Σ₂ Σ₁^½)^½, and that one is symmetric: its eigenvalues are real and
    # not negative.
    shared = np.sqrt(np.maximum(np.linalg.eigvalsh(root @ two @ root), 0.0)).sum()
    return float(means @ means + np.trace(one) + np.trace(two) - 2.0 * shared)


def fpd(real: Array, other: Array, seed: int = 0) -> Value:
    """The Fréchet physics distance, extrapolated to infinitely many showers; NaN of fewer than
    `fewest_showers`, where neither the value nor its error holds (docs/metrics.md).
    """
    enough = min(len(real), len(other)) >= fewest_showers(real.shape[1])
    return extrapolated(real, other, seed) if enough else Value(math.nan)


def extrapolated(real: Array, other: Array, seed: int = 0) -> Value:
    """d² at several sample sizes n, and the intercept of a line in 1/n.

    d² of finite samples is too large by about c/n. Each d² is of rows drawn without repetition, so
    that the bias of a few thousand showers goes with n as well; jetnet repeats rows, which leaves
    that of its 50,000 in. Error: standard deviation of the intercept when both samples are
    resampled, so it says how far other showers would be; lengths stay divided by the largest of the
    real sample.
    """
    random = np.random.RandomState(seed)
    first, second = scaled(real, other)
    value = _intercept(first, second, BATCHES, random)
    others = []
    for _ in range(RESAMPLES):
        one, two = (sample[random.choice(len(sample), len(sample))] for sample in (first, second))
        others.append(_intercept(one, two, 1, random))
    return Value(value, float(np.std(others, ddof=1)))


def kpd(real: Array, other: Array, seed: int = 0) -> Value:
    """The kernel physics distance: the unbiased squared maximum mean discrepancy of k(x, y) = (xᵀy
    / F + 1)⁴, which is 0 on average where both samples are of one distribution. Median over draws,
    and half of what holds 68 % of them.
    """
    first, second = scaled(real, other)
    random, found = np.random.RandomState(seed), []
    rows = max(
        2, min(KERNEL_ROWS, len(first) // 2, len(second) // 2)
    )  # else all draws were the same
    for _ in range(KERNEL_BATCHES):
        x, y = (
            sample[random.choice(len(sample), rows, replace=False)] for sample in (first, second)
        )
        found.append(mmd(x, y))
    low, high = np.percentile(found, PERCENTILES)
    return Value(float(np.median(found)), float(high - low) / 2.0)


def mmd(x: Array, y: Array, of_x: Counts | None = None, of_y: Counts | None = None) -> float:
    """With k(x, y) = (xᵀy / F + 1)⁴ (jetnet, _mmd_poly_quadratic_unbiased; the KID of images takes
    3, docs/metrics.md): MMD²_u = Σ_{i≠j} k(x_i, x_j) / n(n-1) + Σ_{i≠j} k(y_i, y_j) / m(m-1) - 2 Σ
    k(x_i, y_j) / nm (Gretton et al. 2012, lemma 6). `of_x`, `of_y`: how often each row is in its
    sample, (N,) and (M,); once each where they are left out.
    """

    def kernel(left: Array, right: Array) -> Array:
        products = left @ right.T / left.shape[1] + 1.0
        return np.asarray(np.square(np.square(products)))  # faster than ** 4

    def without_itself(sample: Array, counts: Array) -> float:
        among, count = kernel(sample, sample), counts.sum()
        return float((counts @ among @ counts - counts @ np.diag(among)) / (count * (count - 1)))

    xs, ys = (
        np.ones(len(sample)) if counts is None else counts.astype(float)
        for sample, counts in ((x, of_x), (y, of_y))
    )
    across = float(xs @ kernel(x, y) @ ys / (xs.sum() * ys.sum()))
    return without_itself(x, xs) + without_itself(y, ys) - 2.0 * across


def separation(real: Array, other: Array, bins: int = BINS) -> float:
    """S² = ½ Σ (h₁ - h₂)² / (h₁ + h₂) of two samples (N,), (M,) of one number as histograms of sum
    1: 0 for equal ones, 1 for those that nowhere overlap (CaloChallenge, arXiv:2410.21611). The
    bins reach over both samples.
    """
    low, high = min(real.min(), other.min()), max(real.max(), other.max())
    if low == high:
        return 0.0
    one, two = (
        np.histogram(sample, bins, (low, high))[0] / len(sample) for sample in (real, other)
    )
    both = one + two
    filled = both > 0
    return float(0.5 * ((one - two)[filled] ** 2 / both[filled]).sum())


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
        np.mean([_drawn(first, second, size, random) for _ in range(batches)]) for size in sizes
    ]
    return float(np.polyfit(1.0 / sizes, distances, 1)[1])


def _drawn(first: Array, second: Array, size: int, random: np.random.RandomState) -> float:
    rows = [random.choice(len(sample), size, replace=False) for sample in (first, second)]
    return frechet(first[rows[0]], second[rows[1]])


# ---- challenge distances -------------------------------------------------------------------------
# FPD and KPD as the CaloChallenge computes them: with the draws of jetnet 0.2.5 (Kansal et al.
# 2022, arXiv:2211.10295), so to its last digits.
#
# jetnet draws 20,000 to 50,000 rows with repetition, whatever there is. So the distance is that of
# the two sets of showers as they are: of N showers it is too large by about c / N, where c grows
# with the number of features. With fewer than 50,000 showers, compare it with its floor. Rows that
# were drawn several times are counted, not copied.

SEED = 42
FEWEST_DRAWN, MOST_DRAWN, CHALLENGE_POINTS, CHALLENGE_BATCHES = 20_000, 50_000, 10, 20  # of FPD
KERNEL_DRAWN, CHALLENGE_KERNEL_BATCHES, KERNEL_STRIDE = (
    5_000,
    10,
    1_000,
)  # of KPD; seeds are 1,000 apart


def challenge_fpd(real: Array, other: Array) -> Value:
    """d² of sizes with even steps in 1/n, and the intercept of a line through their means that
    neither falls nor begins below 0. Error: of the distance when both sets are resampled (jetnet:
    of the line alone).
    """
    first, second = scaled(real, other)
    sizes = (1.0 / np.linspace(1.0 / FEWEST_DRAWN, 1.0 / MOST_DRAWN, CHALLENGE_POINTS)).astype(int)
    random = np.random.default_rng(SEED)
    means = [
        np.mean([_distance(first, second, int(size), random) for _ in range(CHALLENGE_BATCHES)])
        for size in sizes
    ]
    # The same search as jetnet's, which stops up to 0.2 % before the least squares.
    (intercept, _), _ = curve_fit(_line, 1.0 / sizes, means, bounds=(0.0, np.inf))
    count = min(len(first), len(second))
    return Value(
        float(intercept),
        float(np.std([_distance(first, second, count, random) for _ in range(RESAMPLES)], ddof=1)),
    )


def challenge_kpd(real: Array, other: Array) -> Value:
    """MMD² of 5,000 rows of each set, median of ten draws.

    Error: half of the range that holds 68 % of ten draws of no more rows than there are (jetnet: of
    5,000).
    """
    first, second = scaled(real, other)
    count = min(len(first), len(second))
    draws = _kernel_draws(first, second, KERNEL_DRAWN)
    spread = draws if count >= KERNEL_DRAWN else _kernel_draws(first, second, count)
    low, high = np.percentile(spread, PERCENTILES)
    return Value(float(np.median(draws)), float(high - low) / 2.0)


def _line(x: Array, intercept: float, slope: float) -> Array:
    return intercept + slope * x


def _distance(first: Array, second: Array, size: int, random: np.random.Generator) -> float:
    moments, others = (
        _moments(sample, _counts(sample, size, random), size) for sample in (first, second)
    )
    return frechet_of_moments(moments, others)


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
    """How often each row was drawn (N,)."""
    return np.bincount(random.choice(len(sample), size=size), minlength=len(sample))


def _some(sample: Array, counts: Counts) -> tuple[Array, Counts]:
    return sample[counts > 0], counts[counts > 0]


def _moments(sample: Array, counts: Counts, size: int) -> Moments:
    """Mean and covariance of rows of which each counts so often."""
    mean = counts @ sample / size
    offsets = sample - mean
    return mean, (offsets * counts[:, np.newaxis]).T @ offsets / (size - 1)
