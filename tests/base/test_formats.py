"""One format for each kind of number."""

from __future__ import annotations

from gan_runtime.base import formats


def test_counts_have_commas_and_their_noun() -> None:
    assert [formats.count(number) for number in (0, 1_797, 60_000.4, None)] == [
        *("0", "1,797", "60,000", "–")
    ]
    assert [formats.quantity(number, "image") for number in (1, 1_797)] == [
        *("1 image", "1,797 images")
    ]
    assert formats.quantity(2, "class", "classes") == "2 classes"


def test_shares_are_percentages_without_a_space() -> None:
    assert [formats.percent(0.9512), formats.percent(0.9512, 1)] == ["95%", "95.1%"]
    assert formats.percent(None) == "–"


def test_sizes_are_in_powers_of_ten() -> None:
    sizes = (20_000, 340_000_000, 1_240_000_000, 1_800_000_000_000)
    assert [formats.size(size) for size in sizes] == ["20 kB", "340 MB", "1.2 GB", "1,800.0 GB"]


def test_durations_have_the_digits_that_matter() -> None:
    seconds = (None, 0.041, 0.25, 3.41, 41.2, 102.0, 7_500.0)
    assert [formats.duration(value) for value in seconds] == [
        *("–", "41 ms", "0.25 s", "3.4 s", "41 s", "1 m 42 s", "2 h 05 m")
    ]


def test_timings_have_three_digits() -> None:
    seconds = (None, 0.0413, 0.2531, 3.414, 128.4, 2_000.0)
    assert [formats.timing(value) for value in seconds] == [
        *("–", "41.3 ms", "253 ms", "3.41 s", "128 s", "33 m 20 s")
    ]


def test_losses_have_three_decimals_or_four_digits() -> None:
    assert [formats.loss(value) for value in (None, 0.69314, 12.3456)] == ["–", "0.693", "12.35"]
