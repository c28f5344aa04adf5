"""Statistics of a study: Student's t intervals, differences that may be noise, and the repeats that
a difference needs.

Repeats of times, rates and bytes differ by factors. Their logarithms, and the logarithms of the
ratios of two variants, are assumed to be normal; then the interval mean ± t(n − 1) · s / √n has its
level from two repeats on (Student 1908). The exp of an interval of logarithms has a geometric mean
as its middle. Source of the repeats that a difference needs: NIST/SEMATECH
e-Handbook of Statistical Methods, section 7.2.2.2.

The t distribution is computed by its finite series: the dashboard needs one quantile, for which
SciPy would take 27 MB and 0.5 s (docs/decisions/24-pages-under-load.md).
The tests compare it with SciPy's.
"""

from __future__ import annotations

import bisect
import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

HALVINGS = 60  # of an interval of angles that is π/2 wide: beyond the precision of a double


@functools.lru_cache(maxsize=4_096)
def quantile(share: float, freedom: int) -> float:
    """The t below which `share` of the distribution with `freedom` degrees of freedom lies.

    With t = √ν tan θ the share within ±t grows with the angle θ from 0 to 1, so θ is found by
    halving. 0.975 and ν = 4: 2.776. Exact to 10⁻⁹ of its value for shares up to 1 − 10⁻⁵ and up to
    1,000 degrees of freedom.

    Raises:
        ValueError: `share` is below 0.5 or not below 1, or `freedom` below 1.
    """
    if not (0.5 <= share < 1.0 and freedom >= 1):
        raise ValueError(
            f"a quantile of 0.5 to 1 with 1 degree of freedom or more, not {share} with {freedom}"
        )
    low, high = 0.0, math.pi / 2
    for _ in range(HALVINGS):
        angle = (low + high) / 2
        low, high = (
            (angle, high) if _share_within(angle, freedom) < 2.0 * share - 1.0 else (low, angle)
        )
    return math.sqrt(freedom) * math.tan(low)


def _share_within(angle: float, freedom: int) -> float:
    """A(t | ν), the share between −t and t.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.

    Odd ν:  2/π · (θ + sin θ · (cos θ + 2/3 cos³θ + (2·4)/(3·5) cos⁵θ + … to cos^(ν−2) θ)), without
    the series for ν = 1
    Even ν: sin θ · (1 + 1/2 cos²θ + (1·3)/(2·4) cos⁴θ + … to cos^(ν−2) θ)
    """
    is_odd, cosine = freedom % 2 == 1, math.cos(angle)
    term, total = cosine if is_odd else 1.0, 0.0
    for power in range(2 + is_odd, freedom + 1, 2):
        total += term
        term *= cosine * cosine * (power - 1) / power
    within = math.sin(angle) * total
    return (angle + within) * 2 / math.pi if is_odd else within


LEVEL = 0.95
POWER = 0.8  # probability that a study of the suggested size detects an existing difference
# The probability that a study of two variants without any effect is "clear" after at least one of
# the repeats 3 to 10; after a fixed repeat it is 1 - LEVEL. Simulated in
# tests/studies/test_statistics.py.
CLEAR_AT_SOME_LOOK = 0.17
MOST_REPEATS = 1_000  # most suggested repeats


@dataclass(frozen=True)
class Interval:
    """A mean of `count` numbers and the interval of the true mean; its ends are NaN for a single
    number.
    """

    mean: float
    low: float
    high: float
    count: int

    @property
    def is_known(self) -> bool:
        """Whether there are two numbers, the least that have a spread."""
        return self.count > 1


@dataclass(frozen=True)
class Difference:
    """One variant against the reference. `log_ratios`: ln of the ratio of each repeat."""

    log_ratios: tuple[float, ...]
    level: float = LEVEL

    @functools.cached_property
    def ratio(self) -> Interval:
        """The geometric mean of the ratios, with its interval at `level`."""
        log = _interval(np.asarray(self.log_ratios), self.level)
        with np.errstate(over="ignore"):  # two repeats that are far apart allow any factor
            mean, low, high = (float(np.exp(value)) for value in (log.mean, log.low, log.high))
        return Interval(mean, low, high, log.count)

    @property
    def is_clear(self) -> bool:
        """Whether 1 is outside of the interval."""
        return self.ratio.is_known and not self.ratio.low <= 1.0 <= self.ratio.high

    @property
    def sureness(self) -> str:
        """Whether the difference is clear, in words."""
        if not self.ratio.is_known:
            return "1 repeat, which says nothing about noise"
        return "clear" if self.is_clear else "may be noise"


@dataclass(frozen=True)
class Equivalence:
    """Paired differences d of a variant and the reference, against a margin that was fixed before:
    two one-sided t tests, TOST (Schuirmann 1987, doi:10.1007/BF01068419).

    `margin`: above 0, in the unit of the differences. `level`: of each one-sided test.
    """

    differences: tuple[float, ...]
    margin: float
    level: float = LEVEL

    @functools.cached_property
    def mean(self) -> Interval:
        """The mean of d, with the two-sided interval at 1 - 2 (1 - level), 90% for tests at 95%."""
        return _interval(np.asarray(self.differences), 2.0 * self.level - 1.0)

    @property
    def is_equivalent(self) -> bool:
        """Whether the interval is within ±margin, so that both tests reject."""
        return self.is_not_lower and self.mean.high < self.margin

    @property
    def is_not_lower(self) -> bool:
        """Non-inferiority of what should be high: the interval is above -margin."""
        return self.mean.is_known and self.mean.low > -self.margin

    @property
    def p_value(self) -> float:
        """The p-value of TOST: the larger of both tests; NaN for fewer than two differences."""
        return self._p(self.margin - abs(self.mean.mean))

    @property
    def p_lower(self) -> float:
        """The p-value of `is_not_lower`; NaN for fewer than two differences."""
        return self._p(self.margin + self.mean.mean)

    def _p(self, distance: float) -> float:
        """Of a mean that is `distance` inside the margin."""
        numbers = np.asarray(self.differences)
        if len(numbers) < 2:
            return math.nan
        error = float(numbers.std(ddof=1)) / math.sqrt(len(numbers))
        if error == 0.0:
            return 0.0 if distance > 0.0 else 1.0
        return _share_above(distance / error, len(numbers) - 1)


def _share_above(t: float, freedom: int) -> float:
    """P(T > t) of Student's distribution."""
    half = _share_within(math.atan(abs(t) / math.sqrt(freedom)), freedom) / 2.0
    return 0.5 - math.copysign(half, t)


def student_interval(
    numbers: NDArray[np.float64], level: float = LEVEL
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Mean, lower and upper end of the two-sided interval of the mean, over the last axis of
    `numbers` (…, n), n ≥ 2.
    """
    count = numbers.shape[-1]
    mean = numbers.mean(axis=-1)
    half = quantile(0.5 + level / 2, count - 1) * numbers.std(axis=-1, ddof=1) / math.sqrt(count)
    return mean, mean - half, mean + half


def mean_interval(numbers: Iterable[float], level: float = LEVEL) -> Interval | None:
    """The mean of finite numbers of any sign, such as losses; None without any."""
    finite = np.asarray([number for number in numbers if math.isfinite(number)], dtype=float)
    return _interval(finite, level) if finite.size else None


def geometric_interval(numbers: Iterable[float], level: float = LEVEL) -> Interval | None:
    """The geometric mean of finite positive numbers, such as times; None without any."""
    positive = [number for number in numbers if math.isfinite(number) and number > 0.0]
    return (
        Difference(tuple(math.log(number) for number in positive), level).ratio
        if positive
        else None
    )


def difference(
    variant: dict[int, float], reference: dict[int, float], comparisons: int = 1
) -> Difference | None:
    """The difference of a variant, from repeat → positive number of the variant and the reference.

    Only common repeats count, which are close in time and equal in seed; None without any.

    `comparisons`: the number of differences in the same report. Each has the interval at 1 − 0.05 /
    comparisons (Bonferroni), so that all together are right in 95 of 100 studies.
    """
    pairs = [
        (variant[repeat], reference[repeat]) for repeat in sorted(variant) if repeat in reference
    ]
    ratios = tuple(
        math.log(number / base)
        for number, base in pairs
        if _is_positive(number) and _is_positive(base)
    )
    return Difference(ratios, level_of_each(comparisons)) if ratios else None


def level_of_each(comparisons: int) -> float:
    """The level of each of several intervals that hold jointly at 95%."""
    return 1.0 - (1.0 - LEVEL) / max(1, comparisons)


def pooled_spread(differences: Sequence[Difference]) -> float | None:
    """Standard deviation of log ratios within a difference, over all of them: 0.02 is about 2
    %. None without two repeats.
    """
    repeated = [np.asarray(each.log_ratios) for each in differences if len(each.log_ratios) > 1]
    if not repeated:
        return None
    squares = sum(float(((ratios - ratios.mean()) ** 2).sum()) for ratios in repeated)
    return math.sqrt(squares / sum(len(ratios) - 1 for ratios in repeated))


def repeats_needed(spread: float, share: float, comparisons: int = 1) -> int | None:
    """Repeats with which a difference of `share` (0.05: 5%) is clear in 8 of 10 studies; None
    beyond 1,000.

    The smallest n ≥ 2 with n ≥ ((t(1 − α/2, n − 1) + t(0.8, n − 1)) · spread / ln(1 + share))², α =
    0.05 / comparisons.
    """
    level, per_unit = 0.5 + level_of_each(comparisons) / 2, spread / math.log1p(share)

    def is_enough(count: int) -> bool:
        reach = quantile(level, count - 1) + quantile(POWER, count - 1)
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


@dataclass(frozen=True)
class Cost:
    """The time of a training: seconds before the first step at full speed, and of each step."""

    compile_s: float
    step_s: float

    def after(self, steps: float) -> float:
        """Seconds until `steps` steps are done."""
        return self.compile_s + steps * self.step_s


def break_even_steps(usual: Cost, other: Cost) -> float | None:
    """The steps after which both have taken the same time: (compile of other − of usual) / (step of
    usual − of other). None if one is always ahead.
    """
    longer_start, shorter_step = other.compile_s - usual.compile_s, usual.step_s - other.step_s
    if shorter_step == 0 or longer_start / shorter_step < 0:
        return None
    return longer_start / shorter_step
