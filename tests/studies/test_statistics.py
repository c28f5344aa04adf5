"""Coverage of intervals, differences that may be noise, and the repeats needed to detect one.

Coverage is simulated with seeded noise. The tolerance is four standard errors of a binomial share,
so a correct interval fails for one in about 16,000 seeds, and the range of the numbers, which a
bootstrap of three amounts to, always fails.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from gan_runtime.studies.statistics import (
    CLEAR_AT_SOME_LOOK,
    Equivalence,
    Interval,
    difference,
    geometric_interval,
    mean_interval,
    pooled_spread,
    repeats_needed,
    student_interval,
)

STUDIES = 40_000
TOLERANCE = 4 * math.sqrt(0.95 * 0.05 / STUDIES)  # 0.44%


def log_ratios(repeats: int, effect: float = 0.0, spread: float = 0.1) -> np.ndarray:
    """(STUDIES, repeats), normal around ln(1 + effect)."""
    return np.random.default_rng(repeats).normal(math.log1p(effect), spread, (STUDIES, repeats))


def share_that_holds(low: np.ndarray, high: np.ndarray, truth: float = 0.0) -> float:
    return float(np.mean((low <= truth) & (truth <= high)))


@pytest.mark.parametrize("repeats", [2, 3, 5, 10])
@pytest.mark.parametrize("level", [0.95, 0.99])
def test_interval_covers_the_truth_at_its_level(repeats: int, level: float) -> None:
    _, low, high = student_interval(log_ratios(repeats), level)
    assert share_that_holds(low, high) == pytest.approx(level, abs=TOLERANCE)


@pytest.mark.parametrize("repeats", [2, 3, 5, 10])
def test_skewed_noise_cancels_in_a_ratio_but_narrows_a_single_interval(
    repeats: int,
) -> None:
    noise = np.random.default_rng(repeats).exponential(1.0, (2, STUDIES, repeats))
    _, low, high = student_interval(noise[0] - noise[1])
    assert 0.95 - TOLERANCE <= share_that_holds(low, high) <= 0.975
    _, low, high = student_interval(noise[0])
    assert 0.87 <= share_that_holds(low, high, truth=1.0) <= 0.92


def test_range_of_three_repeats_is_not_a_95_percent_interval() -> None:
    """The percentile bootstrap of a median of three numbers is their range, which contains the
    truth three times in four.
    """
    ratios = log_ratios(3)
    assert share_that_holds(ratios.min(axis=-1), ratios.max(axis=-1)) == pytest.approx(
        0.75, abs=0.01
    )


def test_three_comparisons_are_all_correct_in_95_of_100_studies() -> None:
    """They share a reference, so they sometimes fail together: Bonferroni's level is a bound."""
    random = np.random.default_rng(7)
    reference = random.normal(0.0, 0.1, (STUDIES, 1, 4))
    variants = random.normal(0.0, 0.1, (STUDIES, 3, 4))
    _, low, high = student_interval(variants - reference, 1 - 0.05 / 3)
    all_right = np.mean(((low <= 0.0) & (high >= 0.0)).all(axis=1))
    assert 0.95 - TOLERANCE <= all_right <= 0.965
    _, low, high = student_interval(variants - reference, 0.95)
    assert (
        np.mean(((low <= 0.0) & (high >= 0.0)).all(axis=1)) < 0.90
    )  # the share without a correction


def test_checking_after_each_repeat_raises_the_false_positive_rate() -> None:
    """The page warns of this rate while a study is unfinished."""
    ratios = np.random.default_rng(11).normal(0.0, 0.1, (STUDIES, 10))
    clear = np.zeros(STUDIES, dtype=bool)
    for repeats in range(3, 11):
        _, low, high = student_interval(ratios[:, :repeats], 0.95)
        clear |= (low > 0.0) | (high < 0.0)
        if repeats == 3:
            assert np.mean(clear) == pytest.approx(0.05, abs=TOLERANCE)
    assert np.mean(clear) == pytest.approx(CLEAR_AT_SOME_LOOK, abs=2 * TOLERANCE)


@pytest.mark.parametrize(
    ("spread", "share", "comparisons"), [(0.02, 0.05, 1), (0.05, 0.05, 1), (0.05, 0.10, 3)]
)
def test_suggested_repeats_detect_the_difference_in_8_of_10_studies(
    spread: float, share: float, comparisons: int
) -> None:
    repeats = repeats_needed(spread, share, comparisons)
    assert repeats is not None
    _, low, high = student_interval(log_ratios(repeats, share, spread), 1 - 0.05 / comparisons)
    assert 0.76 <= 1.0 - share_that_holds(low, high) <= 0.95
    _, low, high = student_interval(log_ratios(repeats - 1, share, spread), 1 - 0.05 / comparisons)
    assert 1.0 - share_that_holds(low, high) < 0.82  # one repeat fewer detects it less often


def test_repeats_needed_matches_manual_calculation() -> None:
    """t(0.975, 3) + t(0.8, 3) = 3.182 + 0.978, and (4.160 · 0.02 / 0.04879)² = 2.9 ≤ 4; at n = 3 it
    is 4.8 > 3.
    """
    assert repeats_needed(0.02, 0.05) == 4
    assert repeats_needed(0.05, 0.05) == 11
    assert repeats_needed(0.05, 0.05, comparisons=3) == 14
    assert repeats_needed(0.0, 0.05) == 2
    assert repeats_needed(10.0, 0.05) is None


def test_mean_interval_matches_manual_calculation() -> None:
    """t(0.975, 2) = 4.3027; the standard deviation of 1, 2, 3 is 1: 2 ± 4.3027 / √3."""
    interval = mean_interval([1.0, 2.0, 3.0, math.nan, math.inf])
    assert interval is not None
    assert (interval.mean, interval.count) == (2.0, 3)
    assert (interval.low, interval.high) == pytest.approx((-0.48414, 4.48414), abs=1e-5)


def test_geometric_interval_has_factors_as_bounds() -> None:
    """1, 2 and 4 differ by factors of 2: 2 × exp(± 4.3027 · ln 2 / √3)."""
    interval = geometric_interval([1.0, 2.0, 4.0, 0.0, -3.0])
    assert interval is not None
    assert interval.count == 3
    assert (interval.mean, interval.low, interval.high) == pytest.approx(
        (2.0, 0.35747, 11.1899), rel=1e-4
    )


def test_single_number_has_no_interval_and_no_numbers_give_none() -> None:
    assert mean_interval([]) is None
    assert mean_interval([math.nan, math.inf]) is None
    assert geometric_interval([0.0]) is None
    interval = geometric_interval([2.0])
    assert interval is not None
    assert (interval.mean, interval.count, interval.is_known) == (2.0, 1, False)
    assert math.isnan(interval.low)
    assert math.isnan(interval.high)


def test_equal_numbers_have_an_interval_of_zero_width() -> None:
    assert mean_interval([4.0] * 5) == Interval(4.0, 4.0, 4.0, 5)


def test_difference_is_computed_repeat_by_repeat() -> None:
    """The machine was twice as slow in the second repeat; within each repeat the variant
    takes half the time.
    """
    interval = difference({1: 5.0, 2: 10.1, 3: 5.02}, {1: 10.0, 2: 20.0, 3: 10.0, 4: 7.0})
    assert interval is not None
    assert interval.ratio.count == 3
    assert interval.ratio.mean == pytest.approx((0.5 * 0.505 * 0.502) ** (1 / 3))
    assert interval.is_clear
    assert interval.sureness == "clear"


@pytest.mark.parametrize(
    ("variant", "sureness"),
    [
        ({1: 9.0}, "1 repeat, which says nothing about noise"),
        ({1: 9.0, 2: 9.5}, "may be noise"),
        (
            {1: 9.0, 2: 9.5, 3: 9.9},
            "may be noise",
        ),  # all on one side of 1, which happens by chance in one of four studies
        ({1: 9.0, 2: 11.0, 3: 10.5, 4: 9.5}, "may be noise"),
        ({1: 9.0, 2: 9.01}, "clear"),
    ],
)
def test_difference_that_may_be_noise_is_labeled(variant: dict[int, float], sureness: str) -> None:
    interval = difference(variant, dict.fromkeys(range(1, 6), 10.0))
    assert interval is not None
    assert interval.sureness == sureness
    assert interval.is_clear == (sureness == "clear")


def test_difference_among_several_needs_more_evidence_to_be_clear() -> None:
    variant, reference = {1: 9.0, 2: 9.1, 3: 9.4}, dict.fromkeys((1, 2, 3), 10.0)
    alone, among_three = (
        difference(variant, reference),
        difference(variant, reference, comparisons=3),
    )
    assert alone is not None
    assert among_three is not None
    assert (alone.sureness, among_three.sureness) == ("clear", "may be noise")
    assert among_three.level == pytest.approx(1 - 0.05 / 3)


def test_no_common_repeat_of_positive_numbers_gives_no_difference() -> None:
    assert difference({1: 5.0}, {2: 5.0}) is None
    assert difference({1: 5.0, 2: math.nan, 3: 1.0}, {1: 0.0, 2: 5.0, 3: -1.0}) is None


def test_pooled_spread_is_within_each_difference() -> None:
    halved = difference({1: 0.5, 2: 0.5 * math.e}, {1: 1.0, 2: 1.0})
    doubled = difference({1: 2.0, 2: 2.0, 3: 2.0}, {1: 1.0, 2: 1.0, 3: 1.0})
    lonely = difference({1: 9.0}, {1: 1.0})
    assert halved is not None
    assert doubled is not None
    assert lonely is not None
    assert pooled_spread([halved, doubled, lonely]) == pytest.approx(math.sqrt(0.5 / 3))
    assert pooled_spread([lonely]) is None


# ---- equivalence ---------------------------------------------------------------------------------


@pytest.mark.parametrize("repeats", [3, 8])
def test_difference_at_the_margin_is_rarely_called_equivalent(
    repeats: int,
) -> None:
    random = np.random.default_rng(repeats)
    studies = random.normal(1.0, 0.2, (2_000, repeats))
    share = np.mean([Equivalence(tuple(study), margin=1.0).is_equivalent for study in studies])
    assert share == pytest.approx(0.05, abs=0.02)


def test_equal_variants_are_equivalent_when_noise_is_below_the_margin() -> None:
    differences = (0.1, -0.1, 0.05, -0.02)
    assert Equivalence(differences, margin=0.5).is_equivalent
    assert not Equivalence(differences, margin=0.05).is_equivalent
    assert not Equivalence((0.0,), margin=0.5).is_equivalent


def test_p_value_matches_scipy_t_tests() -> None:
    """max of ttest_1samp(d, -0.5, alternative="greater"), (d, 0.5, alternative="less")."""
    assert Equivalence((0.3, 0.1, 0.4, -0.2), 0.5).p_value == pytest.approx(0.0386371, abs=1e-6)
    assert Equivalence((0.9, 0.7, 0.8), 0.5).p_value == pytest.approx(0.9824506, abs=1e-6)
    assert Equivalence((0.2, 0.2, 0.2), 0.5).p_value == 0.0
    assert math.isnan(Equivalence((0.2,), 0.5).p_value)
    assert Equivalence((0.9, 0.7, -0.3), 0.5).p_lower == pytest.approx(0.0641990, abs=1e-6)


def test_non_inferiority_allows_any_gain() -> None:
    gain = Equivalence((0.9, 1.1, 1.0), margin=0.3)
    assert gain.is_not_lower
    assert not gain.is_equivalent
    assert not Equivalence((-0.4, -0.2, -0.3), margin=0.3).is_not_lower
