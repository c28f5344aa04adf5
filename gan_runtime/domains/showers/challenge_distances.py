"""FPD and KPD as the CaloChallenge computes them: with the draws of jetnet 0.2.5 (Kansal et al. 2022, arXiv:2211.10295), so to its last digits.

jetnet draws 20,000 to 50,000 rows with repetition, whatever there is. So the distance is that of the two sets of showers as they are: of N showers
it is too large by about c / N, where c grows with the number of features. With fewer than 50,000 showers, compare it with its floor.
Rows that were drawn several times are counted, not copied.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import curve_fit

from gan_runtime.domains.showers.distances import (
    PERCENTILES,
    RESAMPLES,
    Array,
    Moments,
    frechet_of_moments,
    mmd,
    scaled,
)
from gan_runtime.domains.showers.values import Value

SEED = 42
FEWEST_DRAWN, MOST_DRAWN, POINTS, BATCHES = 20_000, 50_000, 10, 20  # of FPD
KERNEL_DRAWN, KERNEL_BATCHES, KERNEL_STRIDE = 5_000, 10, 1_000  # of KPD; seeds are 1,000 apart
Counts = NDArray[np.int64]


def challenge_fpd(real: Array, other: Array) -> Value:
    """d² of sizes with even steps in 1/n, and the intercept of a line through their means that neither falls nor begins below 0. Error: of
    the distance when both sets are resampled (jetnet: of the line alone)."""
    first, second = scaled(real, other)
    sizes = (1.0 / np.linspace(1.0 / FEWEST_DRAWN, 1.0 / MOST_DRAWN, POINTS)).astype(int)
    random = np.random.default_rng(SEED)
    means = [np.mean([_distance(first, second, int(size), random) for _ in range(BATCHES)]) for size in sizes]
    # The same search as jetnet's, which stops up to 0.2 % before the least squares.
    (intercept, _), _ = curve_fit(_line, 1.0 / sizes, means, bounds=(0.0, np.inf))
    count = min(len(first), len(second))
    return Value(
        float(intercept),
        float(np.std([_distance(first, second, count, random) for _ in range(RESAMPLES)], ddof=1)),
    )


def challenge_kpd(real: Array, other: Array) -> Value:
    """MMD² of 5,000 rows of each set, median of ten draws. Error: half of the range that holds 68 % of ten draws of no more rows than there
    are (jetnet: of 5,000)."""
    first, second = scaled(real, other)
    count = min(len(first), len(second))
    draws = _kernel_draws(first, second, KERNEL_DRAWN)
    spread = draws if count >= KERNEL_DRAWN else _kernel_draws(first, second, count)
    low, high = np.percentile(spread, PERCENTILES)
    return Value(float(np.median(draws)), float(high - low) / 2.0)


def _line(x: Array, intercept: float, slope: float) -> Array:
    return intercept + slope * x


def _distance(first: Array, second: Array, size: int, random: np.random.Generator) -> float:
    moments, others = (_moments(sample, _counts(sample, size, random), size) for sample in (first, second))
    return frechet_of_moments(moments, others)


def _kernel_draws(first: Array, second: Array, size: int) -> list[float]:
    draws = []
    for batch in range(KERNEL_BATCHES):
        random = np.random.default_rng(SEED + batch * KERNEL_STRIDE)
        (x, of_x), (y, of_y) = (_some(sample, _counts(sample, size, random)) for sample in (first, second))
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
