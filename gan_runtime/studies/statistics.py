"""How sure a study is: Student's t intervals, when a difference may be noise, and how many repeats would tell.

Repeats of times, rates and bytes differ by factors. Their logarithms, and the logarithms of the ratios of two variants, are
taken to be about normal; then the interval mean ± t(n − 1) · s / √n holds its level from two repeats on (Student 1908). An
interval of logarithms is turned back by exp: its middle is a geometric mean.
Source of the repeats that a difference needs: NIST/SEMATECH e-Handbook of Statistical Methods, section 7.2.2.2.
"""

from __future__ import annotations

import bisect
import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gan_runtime.studies import student

LEVEL = 0.95
POWER = 0.8  # how often a study of the suggested size finds a difference that is there
# How often a study of two variants without any effect is "clear" at some look, if one looks after each repeat from the 3rd to the 10th; at
# a single look it is 1 - LEVEL. Simulated in tests/studies/test_statistics.py.
CLEAR_AT_SOME_LOOK = 0.17
MOST_REPEATS = 1_000  # further nobody looks


@dataclass(frozen=True)
class Interval:
    """A mean of `count` numbers, and from where to where the true one lies; the ends are NaN for a single number."""

    mean: float
    low: float
    high: float
    count: int

    @property
    def is_known(self) -> bool:
        """Whether there are two numbers, the least that tell how far they scatter."""
        return self.count > 1


@dataclass(frozen=True)
class Difference:
    """One variant against the reference. `log_ratios`: ln of the ratio of their numbers, repeat by repeat.

    `ratio` is their geometric mean with its interval at `level`. `is_clear`: the interval leaves 1 out.
    """

    log_ratios: tuple[float, ...]
    level: float = LEVEL

    @functools.cached_property
    def ratio(self) -> Interval:
        """See the class."""
        found = _interval(np.asarray(self.log_ratios), self.level)
        with np.errstate(over="ignore"):  # two repeats that are far apart allow any factor
            mean, low, high = (float(np.exp(value)) for value in (found.mean, found.low, found.high))
        return Interval(mean, low, high, found.count)

    @property
    def is_clear(self) -> bool:
        """See the class."""
        return self.ratio.is_known and not self.ratio.low <= 1.0 <= self.ratio.high

    @property
    def sureness(self) -> str:
        """In words: "clear", "may be noise", or that a single repeat says nothing."""
        if not self.ratio.is_known:
            return "1 repeat, which says nothing about noise"
        return "clear" if self.is_clear else "may be noise"


def student_interval(
    numbers: NDArray[np.float64], level: float = LEVEL
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Mean, lower and upper end of the two-sided interval of the mean, over the last axis of `numbers` (…, n), n ≥ 2."""
    count = numbers.shape[-1]
    mean = numbers.mean(axis=-1)
    half = student.quantile(0.5 + level / 2, count - 1) * numbers.std(axis=-1, ddof=1) / math.sqrt(count)
    return mean, mean - half, mean + half


def mean_interval(numbers: Iterable[float], level: float = LEVEL) -> Interval | None:
    """The mean of finite numbers, for quantities of any sign such as losses; None when there are none."""
    finite = np.asarray([number for number in numbers if math.isfinite(number)], dtype=float)
    return _interval(finite, level) if finite.size else None


def geometric_interval(numbers: Iterable[float], level: float = LEVEL) -> Interval | None:
    """The geometric mean of finite positive numbers, for times, rates and bytes; None when there are none."""
    positive = [number for number in numbers if math.isfinite(number) and number > 0.0]
    return Difference(tuple(math.log(number) for number in positive), level).ratio if positive else None


def difference(
    variant: dict[int, float], reference: dict[int, float], comparisons: int = 1
) -> Difference | None:
    """Repeat → positive number of the variant and of the reference. Only repeats that both have count, since neighbours in
    time and equal in seed belong together; None when there are none.

    `comparisons`: how many such differences are read side by side. Each has the interval at 1 − 0.05 / comparisons
    (Bonferroni), so that all of them together are right in 95 of 100 studies.
    """
    pairs = [(variant[repeat], reference[repeat]) for repeat in sorted(variant) if repeat in reference]
    ratios = tuple(math.log(one / other) for one, other in pairs if _is_positive(one) and _is_positive(other))
    return Difference(ratios, level_of_each(comparisons)) if ratios else None


def level_of_each(comparisons: int) -> float:
    """The level of one of several intervals that hold together at 95 %."""
    return 1.0 - (1.0 - LEVEL) / max(1, comparisons)


def pooled_spread(differences: Sequence[Difference]) -> float | None:
    """Standard deviation of log ratios within a difference, over all of them: 0.02 is about 2 %. None without two repeats."""
    scattered = [np.asarray(one.log_ratios) for one in differences if len(one.log_ratios) > 1]
    if not scattered:
        return None
    squares = sum(float(((ratios - ratios.mean()) ** 2).sum()) for ratios in scattered)
    return math.sqrt(squares / sum(len(ratios) - 1 for ratios in scattered))


def repeats_needed(spread: float, share: float, comparisons: int = 1) -> int | None:
    """Repeats with which a difference of `share` (0.05: 5 %) is clear in 8 of 10 studies; None beyond 1,000.

    The smallest n ≥ 2 with n ≥ ((t(1 − α/2, n − 1) + t(0.8, n − 1)) · spread / ln(1 + share))², α = 0.05 / comparisons.
    """
    level, per_unit = 0.5 + level_of_each(comparisons) / 2, spread / math.log1p(share)

    def is_enough(count: int) -> bool:
        reach = student.quantile(level, count - 1) + student.quantile(POWER, count - 1)
        return count >= (reach * per_unit) ** 2

    count = bisect.bisect_left(range(MOST_REPEATS + 1), True, lo=2, key=is_enough)  # t falls with n
    return count if count <= MOST_REPEATS else None


def _interval(numbers: NDArray[np.float64], level: float) -> Interval:
    if numbers.size == 1:
        return Interval(float(numbers[0]), math.nan, math.nan, 1)
    mean, low, high = (float(value) for value in student_interval(numbers, level))
    return Interval(mean, low, high, numbers.size)


def _is_positive(number: float) -> bool:
    return math.isfinite(number) and number > 0.0
