"""Criteria for a good result of a run."""

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


def test_no_run_is_both_faster_and_better_than_one_on_the_front() -> None:
    frame = measured(
        "error", (30.0, 0.1), (10.0, 0.4), (20.0, 0.5), (40.0, 0.1), (10.0, 0.6), (50.0, 0.05)
    )
    assert list(results.front(frame, "error", LOWER)["run_id"]) == ["b", "a", "f"]
    assert list(results.front(frame, "error", HIGHER)["run_id"]) == ["e"]


@pytest.mark.parametrize("name", [*results.RESULTS, "loss_generator"])
def test_results_not_measuring_image_quality_have_no_front(name: str) -> None:
    """A small score gap, an accuracy of 0.5 and many images per second are not better images."""
    offered = results.results(declarations.of("dcgan_mnist"))
    frame = (
        measured(name, (1.0, 0.6), (2.0, 0.5), (3.0, 0.9))
        if name != "seconds"
        else measured("seconds", (1.0, 1.0))
    )
    assert results.front(frame, name, offered[name]).empty


def test_unmeasured_runs_are_not_on_the_front() -> None:
    frame = measured("error", (math.nan, 0.1), (5.0, math.nan), (9.0, 0.3))
    assert list(results.front(frame, "error", LOWER)["run_id"]) == ["c"]


def test_results_are_formatted_as_text() -> None:
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


def test_points_show_front_membership_and_are_hollow_if_colors_repeat() -> None:
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


def test_numbers_are_placed_between_the_lowest_and_highest_run() -> None:
    assert places(axis(10, 20, 30)) == [0.0, 0.5, 1.0]
    assert places(axis(-1.0, 3.0)) == [0.0, 1.0]


def test_numbers_spanning_decades_use_a_logarithmic_axis() -> None:
    assert places(axis(1e-4, 1e-3, 1e-2)) == [0.0, 0.5, 1.0]
    assert places(axis(0.0, 50.0, 100.0)) == [0.0, 0.5, 1.0]


def test_choices_keep_their_order_and_unused_ones_are_omitted() -> None:
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


def test_equal_values_are_centered_and_unmeasured_ones_omitted() -> None:
    assert places(axis(5, 5)) == [0.5, 0.5]
    positions = results.crossings([axis(1.0, math.nan, None, 3.0)])["place"]
    assert [None if math.isnan(place) else place for place in positions] == [0.0, None, None, 1.0]


def test_ticks_are_actual_run_values_and_are_not_crowded() -> None:
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
