"""One format for each kind of number."""

from __future__ import annotations

import pytest

from gan_runtime.base import formats
from gan_runtime.base.metrics import Metric


def test_counts_have_commas_and_nouns() -> None:
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


def test_durations_show_only_significant_digits() -> None:
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


@pytest.mark.parametrize(
    ("form", "value", "text"),
    [
        (".3~g", 0.2336, "0.234"),
        (".3~g", 5_837.2, "5,840"),
        (".3~g", -7_940.4, "-7,940"),
        (".3~g", 2e9, "2e+09"),
        (".1%", 0.9523, "95.2%"),
        (".2f", 12_345.678, "12,345.68"),
        (".1e", 12_345.0, "1.2e+04"),  # the declaration requires an exponent
    ],
)
def test_metric_values_are_formatted_without_needless_exponents(
    form: str, value: float, text: str
) -> None:
    assert Metric("a", "A", "A", format=form).in_words(value) == text
