"""How like the ground truth generated rows are, from the scores of an evaluation and their floors:
the scores of real rows against other real rows.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from gan_runtime.base import formats
from gan_runtime.base.metrics import Metric
from gan_runtime.records.answer import Score

# The only scale for how like the data generated rows are, best first.
LIKENESS = ("as good as", "close to", "partly like", "unlike")
FAR = 10.0  # times the floor; from there without a decimal
# Limits of the scale, in times worse than the floor at the median score. Scores that are better
# when higher, such as shares, end at the floor: half of it is already far.
LIMITS = {"lower": (2.0, FAR), "higher": (1.25, 2.5)}


@dataclass(frozen=True)
class Comparison:
    """Scores with a better direction and a floor. `unbiased`: names of scores with a floor near 0,
    whose ratios to it mean nothing.
    """

    rated: Mapping[Metric, Score]
    unbiased: Collection[str] = ()

    @classmethod
    def of(
        cls, scores: Mapping[Metric, Score | None], unbiased: Collection[str] = ()
    ) -> Comparison:
        """The scores that can be compared."""
        rated = {
            metric: score
            for metric, score in scores.items()
            if metric.better and score is not None and _is_rated(score, unbiased)
        }
        return cls(rated, unbiased)

    @property
    def missed(self) -> dict[Metric, Score]:
        """The scores that do not reach their floor."""
        return {metric: score for metric, score in self.rated.items() if not reaches(metric, score)}

    @property
    def distances(self) -> dict[Metric, float]:
        """How many times worse than its floor each score is."""
        return {
            metric: ratio(metric, score.value, score.floor)
            for metric, score in self.rated.items()
            if score.name not in self.unbiased
        }

    @property
    def middles(self) -> dict[str, float]:
        """The median distance of the scores of each better direction."""
        distances = self.distances
        return {
            better: statistics.median(of_kind)
            for better in LIMITS
            if (of_kind := [far for metric, far in distances.items() if metric.better == better])
        }

    @property
    def rank(self) -> int:
        """The place on the scale LIKENESS; 0 is best."""
        if not self.missed:
            return 0
        return 1 + max(itertools.starmap(_limits_passed, self.middles.items()), default=1)

    @property
    def decisive(self) -> tuple[str, float]:
        """The better direction whose median decides the rank, and this median. There is one unless
        all scores are unbiased.
        """
        return max(self.middles.items(), key=lambda middle: _limits_passed(*middle))

    @property
    def grade(self) -> str:
        """A grade of LIKENESS."""
        return LIKENESS[self.rank]


def _limits_passed(better: str, middle: float) -> int:
    """How many limits of the scale a median distance exceeds."""
    return sum(middle > limit for limit in LIMITS[better])


def ratio(metric: Metric, value: float, reference: float) -> float:
    """How many times worse than the reference a value is; below 1 it is better."""
    if metric.better == "lower":
        return value / reference
    return reference / value if value > 0.0 else math.inf


def reaches(metric: Metric, score: Score) -> bool:
    """Whether a score is within two standard deviations of its floor, or a quarter of the floor if
    no error is known.
    """
    deviation = math.hypot(
        *(error for error in (score.error, score.floor_error) if not math.isnan(error))
    )
    excess = score.value - score.floor if metric.better == "lower" else score.floor - score.value
    return excess <= (2.0 * deviation if deviation else 0.25 * score.floor)


def middle_in_words(better: str, middle: float) -> str:
    """A median distance in words: "42 times", "80% of"."""
    if better == "higher":
        return f"{formats.percent(1.0 / middle)} of"
    return f"{formats.count(middle)} times" if middle >= FAR else f"{middle:.1f} times"


def _is_rated(score: Score, unbiased: Collection[str]) -> bool:
    """Whether a floor is known, and for a score around 0 also the errors of both."""
    if score.name in unbiased:
        return all(map(math.isfinite, (score.value, score.floor, score.error, score.floor_error)))
    return score.floor > 0.0 and not math.isnan(score.value)
