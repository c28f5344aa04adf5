"""Figures from turns, with numbers simple enough to check mentally."""

from __future__ import annotations

import pytest

from benchmarks.ratios import overhead, speed_ratio_of_totals, speed_ratios, spread
from benchmarks.turns import Turn


def test_a_spread_is_median_quartiles_and_extremes() -> None:
    numbers = spread([1.0, 5.0, 3.0, 2.0, 4.0])
    assert (
        numbers.value,
        numbers.quartile_1,
        numbers.quartile_3,
        numbers.lowest,
        numbers.highest,
        numbers.count,
    ) == (
        3,
        2,
        4,
        1,
        5,
        5,
    )


def test_one_value_is_its_own_spread() -> None:
    numbers = spread([2.5])
    assert (numbers.value, numbers.quartile_1, numbers.quartile_3, numbers.count) == (
        2.5,
        2.5,
        2.5,
        1,
    )


def test_a_spread_of_no_values_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        spread([])


def test_ratios_compare_neighboring_turns_of_different_length() -> None:
    ours = [Turn(10, 2.0), Turn(20, 8.0)]  # 0.2 and 0.4 s per step
    peer = [Turn(10, 3.0), Turn(10, 6.0)]  # 0.3 and 0.6 s per step
    assert speed_ratios(ours, peer) == pytest.approx([1.5, 1.5])
    assert speed_ratio_of_totals(ours, peer) == pytest.approx((9.0 / 20) / (10.0 / 30))


def test_sides_with_different_turn_counts_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match="argument"):
        speed_ratios([Turn(10, 2.0)], [])


def test_overhead_combines_streaming_and_epoch_ends() -> None:
    bare = [Turn(10, 10.0)] * 4  # 1 s per step
    full = [
        Turn(10, 10.1),
        Turn(10, 10.1),
        Turn(10, 10.1),
        Turn(10, 12.1),
    ]  # 1% slower, plus 2 s at the end of the epoch
    result = overhead(full, bare, [False, False, False, True], steps_per_epoch=200)
    assert result.streaming.value == pytest.approx(0.01)
    assert result.epoch_end_s == pytest.approx(2.0)
    assert result.epoch_end == pytest.approx(0.01)  # 2 s of 200
    assert result.share == pytest.approx(0.02)
    assert result.of_totals == pytest.approx(0.06)  # this epoch was only 40 steps long


def test_overhead_without_an_epoch_end_is_refused() -> None:
    with pytest.raises(ValueError, match="turns that end one"):
        overhead([Turn(1, 1.0)], [Turn(1, 1.0)], [False], steps_per_epoch=10)
