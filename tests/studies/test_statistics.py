"""Medians, intervals, and when a difference may be noise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gan_runtime.studies.statistics import Interval, difference, median_interval


def test_one_and_two_numbers_have_a_range_and_none_has_nothing() -> None:
    assert median_interval([]) is None
    assert median_interval([math.nan, math.inf]) is None
    assert median_interval([2.0]) == Interval(2.0, 2.0, 2.0, 1)
    assert median_interval([2.0, 3.0, math.nan]) == Interval(2.5, 2.0, 3.0, 2)


def test_equal_numbers_have_an_interval_without_width() -> None:
    assert median_interval([4.0] * 5) == Interval(4.0, 4.0, 4.0, 5)


def test_an_interval_holds_the_median_lies_within_the_range_and_is_the_same_twice() -> None:
    numbers = [10.0, 10.2, 9.9, 10.1, 30.0]
    found = median_interval(numbers)
    assert found == median_interval(numbers)
    assert found is not None
    assert (found.median, found.count, found.is_range) == (10.1, 5, False)
    assert 9.9 <= found.low <= 10.1 <= found.high <= 30.0


def test_nineteen_of_twenty_intervals_hold_the_true_median() -> None:
    random = np.random.default_rng(3)
    held = [median_interval(list(random.normal(5.0, 1.0, 25))) for _ in range(200)]
    share = np.mean([one is not None and one.low <= 5.0 <= one.high for one in held])
    assert 0.90 <= share <= 0.99


def test_a_difference_is_taken_repeat_by_repeat() -> None:
    """The machine was twice as slow in the second repeat; within each repeat the variant takes half the time."""
    found = difference({1: 5.0, 2: 10.0, 3: 5.1}, {1: 10.0, 2: 20.0, 3: 10.0, 4: 7.0})
    assert found is not None
    assert (found.ratio.median, found.ratio.count) == (0.5, 3)
    assert found.is_clear
    assert found.sureness == "clear"


@pytest.mark.parametrize(
    ("variant", "sureness"),
    [
        ({1: 9.0}, "1 repeat: too few to tell from noise"),
        ({1: 9.0, 2: 9.0}, "2 repeats: too few to tell from noise"),
        ({1: 9.0, 2: 11.0, 3: 10.5, 4: 9.5}, "may be noise"),
    ],
)
def test_a_difference_that_may_be_noise_says_so(variant: dict[int, float], sureness: str) -> None:
    found = difference(variant, dict.fromkeys(range(1, 6), 10.0))
    assert found is not None
    assert found.sureness == sureness
    assert not found.is_clear


def test_without_a_common_repeat_there_is_no_difference() -> None:
    assert difference({1: 5.0}, {2: 5.0}) is None
