"""Smoothed curves: the mean of each curve's own last points."""

from __future__ import annotations

import pandas as pd
import pytest

from dashboard import charts


def test_a_smoothed_point_averages_the_last_points_of_its_curve() -> None:
    rows = pd.DataFrame(
        {"metric": ["g", "d"] * 4, "mean": [1.0, 10.0, 2.0, 20.0, 6.0, 60.0, 1.0, 10.0]}
    )
    smoothed = charts.with_smoothed(rows, 3, "metric")
    assert list(smoothed["smoothed"]) == [1.0, 10.0, 1.5, 15.0, 3.0, 30.0, 3.0, 30.0]
    assert list(smoothed["mean"]) == list(rows["mean"])


def test_a_window_of_one_changes_nothing_and_empty_rows_stay_empty() -> None:
    rows = pd.DataFrame({"metric": ["g", "g"], "mean": [1.0, 3.0]})
    assert list(charts.with_smoothed(rows, 1, "metric")["smoothed"]) == [1.0, 3.0]
    assert list(charts.with_smoothed(rows.iloc[:0], 3, "metric").columns) == [
        "metric",
        "mean",
        "smoothed",
    ]


@pytest.mark.parametrize(
    ("share", "points", "mean_of"), [(0.03, 400, 12), (0.03, 80, 2), (0.0, 400, 1)]
)
def test_smoothing_uses_at_least_one_point(share: float, points: int, mean_of: int) -> None:
    assert charts.smoothed_points(share, points) == mean_of
