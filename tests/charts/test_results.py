"""What counts as a good result of a run."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from dashboard.compare import charts, results
from dashboard.compare.results import Axis, Result
from gan_runtime.catalog import declarations


def measured(name: str, *pairs: tuple[float, float]) -> pd.DataFrame:
    """Runs "a", "b", … with these training seconds and results."""
    return pd.DataFrame(
        [
            {"run_id": "abcdef"[index], "seconds": seconds, name: value}
            for index, (seconds, value) in enumerate(pairs)
        ]
    )


LOWER = Result("Error", "Error", ".3f", "lowest")
HIGHER = Result("Agreement", "Agreement", ".3f", "highest")


def test_on_the_front_no_run_is_both_faster_and_better() -> None:
    frame = measured(
        "error", (30.0, 0.1), (10.0, 0.4), (20.0, 0.5), (40.0, 0.1), (10.0, 0.6), (50.0, 0.05)
    )
    assert list(results.front(frame, "error", LOWER)["run_id"]) == ["b", "a", "f"]
    assert list(results.front(frame, "error", HIGHER)["run_id"]) == ["e"]


@pytest.mark.parametrize("name", [*results.RESULTS, "loss_generator"])
def test_what_does_not_measure_images_has_no_front(name: str) -> None:
    """A small score gap, an accuracy of one half and many images a second are no better images."""
    offered = results.results(declarations.of("dcgan_mnist"))
    frame = (
        measured(name, (1.0, 0.6), (2.0, 0.5), (3.0, 0.9))
        if name != "seconds"
        else measured("seconds", (1.0, 1.0))
    )
    assert results.front(frame, name, offered[name]).empty


def test_what_was_not_measured_is_on_no_front() -> None:
    frame = measured("error", (math.nan, 0.1), (5.0, math.nan), (9.0, 0.3))
    assert list(results.front(frame, "error", LOWER)["run_id"]) == ["c"]


def test_results_in_words() -> None:
    texts = [
        results.text(name, value)
        for name, value in {
            "accuracy_last": 0.5625,
            "seconds": 102.0,
            "images": 12_345.0,
            "score_gap_last": 0.1234,
        }.items()
    ]
    assert texts == ["56.2%", "1 m 42 s", "12,345", "0.123"]
    assert results.text("seconds", math.nan) == "–"


def test_points_say_whether_they_are_on_the_front_and_are_hollow_where_colors_run_out() -> None:
    frame = measured("error", (10.0, 0.4), (20.0, 0.5), (30.0, 0.1)).assign(
        run=["first", "second", "third"], series=["first", "second", "third"], text="–"
    )
    front = results.front(frame, "error", LOWER)
    colors = {"first": "#009E73", "second": "#E69F00", "third": "#009E73"}
    points = charts.scatter(frame, front, colors, LOWER, "error").data
    assert list(points["on_front"]) == ["on it", "another run is better", "on it"]
    assert list(points["hollow"]) == [False, False, True]


# ---- parallel coordinates ------------------------------------------------------------------------


def axis(*values: object, choices: tuple[str, ...] = ()) -> Axis:
    """An axis of runs "a", "b", … with these values."""
    named = {"abcdefghijkl"[index]: value for index, value in enumerate(values)}
    return Axis("axis", named, {run: str(value) for run, value in named.items()}, choices)


def places(of: Axis) -> list[float]:
    return [round(place, 3) for place in results.crossings([of])["place"]]


def test_numbers_are_between_the_lowest_and_the_highest_run() -> None:
    assert places(axis(10, 20, 30)) == [0.0, 0.5, 1.0]
    assert places(axis(-1.0, 3.0)) == [0.0, 1.0]


def test_numbers_that_span_decades_are_on_a_logarithmic_axis() -> None:
    assert places(axis(1e-4, 1e-3, 1e-2)) == [0.0, 0.5, 1.0]
    assert places(axis(0.0, 50.0, 100.0)) == [0.0, 0.5, 1.0]


def test_choices_are_in_their_order_and_only_those_that_a_run_has() -> None:
    order = ("float32", "mixed_bfloat16", "mixed_float16")
    assert places(axis("mixed_float16", "float32", "mixed_float16", choices=order)) == [
        1.0,
        0.0,
        1.0,
    ]


def test_choices_of_a_newer_version_follow_the_known_ones() -> None:
    order = ("float32", "mixed_bfloat16")
    assert places(axis("float8", "float32", "float6", choices=order)) == [1.0, 0.0, 0.5]
    assert places(axis("float8", choices=order)) == [0.5]


def test_equal_values_are_in_the_middle_and_unmeasured_ones_nowhere() -> None:
    assert places(axis(5, 5)) == [0.5, 0.5]
    positions = results.crossings([axis(1.0, math.nan, None, 3.0)])["place"]
    assert [None if math.isnan(place) else place for place in positions] == [0.0, None, None, 1.0]


def test_ticks_are_values_that_runs_have_and_do_not_crowd() -> None:
    few = results.ticks([axis(64, 256, 64)])
    assert list(few.itertuples(index=False, name=None)) == [
        ("axis", 0.0, "64", "left"),
        ("axis", 1.0, "256", "right"),
    ]
    many = results.ticks([axis(*(float(number) for number in range(12)))])
    assert list(many["text"]) == ["0.0", "2.0", "4.0", "6.0", "8.0", "11.0"]
    long = results.ticks(
        [
            axis(
                "mixed bfloat16",
                "mixed float16",
                "float32",
                choices=("float32", "mixed bfloat16", "mixed float16"),
            )
        ]
    )
    assert list(long["text"]) == ["float32", "mixed bfloat16", "mixed float16"]
    assert list(long["align"]) == ["left", "center", "right"]
