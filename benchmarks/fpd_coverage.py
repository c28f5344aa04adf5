"""Coverage of the interval of an extrapolated FPD. The true value is 0: both samples have the same
distribution of simulated showers.

python -m benchmarks.fpd_coverage [REPEATS]    prints the table of docs/metrics.md, in minutes

Tiny grid, 25 layers, 126 features. At 1 to 1,000 GeV the first layer is empty in 6 of 10 showers
and the last one in 2 of 10.
"""

from __future__ import annotations

import sys

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import markdown
from gan_runtime.domains.showers.distances import Array, extrapolated
from gan_runtime.domains.showers.features import features_of, high_level
from gan_runtime.domains.showers.simulation import TINY, simulate

POOL, CHUNK, REPEATS = 12_000, 50, 25
ENERGIES_GEV = {"1 to 1,000 GeV": (1.0, 1_000.0), "100 to 200 GeV": (100.0, 200.0)}
COUNTS = (2, 4, 8)  # showers per feature
TITLES = (
    "Energies",
    "Showers",
    "Per feature",
    "Mean × 10³",
    "Spread × 10³",
    "Error × 10³",
    "Within 1 error",
    "Within 2",
)


def main() -> None:
    """Prints the table."""
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else REPEATS
    with threadpool_limits(1):
        lines = [line for name in ENERGIES_GEV for line in _lines(name, repeats)]
    print(markdown.table(TITLES, lines))


def _lines(name: str, repeats: int) -> list[list[str]]:
    random = np.random.default_rng(0)
    pool = np.concatenate([_features(random, *ENERGIES_GEV[name]) for _ in range(POOL // CHUNK)])
    return [
        _line(name, pool, per_feature * pool.shape[1], random, repeats) for per_feature in COUNTS
    ]


def _features(random: np.random.Generator, low: float, high: float) -> Array:
    energies = np.exp(random.uniform(np.log(low), np.log(high), CHUNK))
    angles = np.radians(random.uniform(60.0, 120.0, CHUNK))
    return high_level(features_of(simulate(energies, angles, random, TINY), energies))


def _line(
    name: str, pool: Array, count: int, random: np.random.Generator, repeats: int
) -> list[str]:
    values, errors = np.zeros(repeats), np.zeros(repeats)
    for repeat in range(repeats):
        rows = random.permutation(len(pool))[: 2 * count]
        interval = extrapolated(pool[rows[:count]], pool[rows[count:]], seed=repeat)
        values[repeat], errors[repeat] = 1e3 * interval.value, 1e3 * interval.error
    figures = (values.mean(), values.std(ddof=1), errors.mean())
    within = [float(np.mean(np.abs(values) < times * errors)) for times in (1.0, 2.0)]
    numbers = [f"{figure:.1f}" for figure in figures]
    return [
        name,
        f"{count:,}",
        str(count // pool.shape[1]),
        *numbers,
        *(f"{share:.0%}" for share in within),
    ]


if __name__ == "__main__":
    main()
