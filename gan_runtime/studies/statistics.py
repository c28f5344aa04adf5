"""How sure a study is: medians with bootstrap intervals, and when a difference may be noise.

Intervals are 95 % percentile bootstrap intervals of the median (Efron and Tibshirani 1993, chapter 13), by SciPy, with a
fixed seed, so that a page says the same twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

ENOUGH = 3  # fewer numbers have no interval worth the name: their range is shown instead
RESAMPLES = 2_000


@dataclass(frozen=True)
class Interval:
    """A median of `count` numbers, and from where to where it may lie: a 95 % interval, or the range when count < 3."""

    median: float
    low: float
    high: float
    count: int

    @property
    def is_range(self) -> bool:
        """Whether there were too few numbers for an interval."""
        return self.count < ENOUGH


@dataclass(frozen=True)
class Difference:
    """One variant against the reference: the ratio of their numbers, repeat by repeat.

    `is_clear`: at least 3 repeats, and the interval leaves 1 out. Else the difference may be noise.
    """

    ratio: Interval

    @property
    def is_clear(self) -> bool:
        """See the class."""
        return not self.ratio.is_range and not self.ratio.low <= 1.0 <= self.ratio.high

    @property
    def sureness(self) -> str:
        """In words: "clear", "may be noise", or why nothing can be said."""
        if self.ratio.is_range:
            return f"{self.ratio.count} repeat{'s' if self.ratio.count > 1 else ''}: too few to tell from noise"
        return "clear" if self.is_clear else "may be noise"


def median_interval(numbers: Sequence[float]) -> Interval | None:
    """Of finite numbers; None when there are none."""
    finite = np.asarray([number for number in numbers if np.isfinite(number)], dtype=float)
    if finite.size == 0:
        return None
    median = float(np.median(finite))
    if finite.size < ENOUGH or np.ptp(finite) == 0.0:
        return Interval(median, float(finite.min()), float(finite.max()), int(finite.size))
    found = stats.bootstrap((finite,), np.median, n_resamples=RESAMPLES, method="percentile", rng=np.random.default_rng(0))
    return Interval(median, float(found.confidence_interval.low), float(found.confidence_interval.high), int(finite.size))


def difference(variant: dict[int, float], reference: dict[int, float]) -> Difference | None:
    """Repeat → number of the variant and of the reference. Only repeats that both have count, since neighbours in time and
    equal in seed belong together; None when there are none."""
    pairs = [variant[repeat] / reference[repeat] for repeat in sorted(variant) if reference.get(repeat)]
    ratio = median_interval(pairs)
    return None if ratio is None else Difference(ratio)
