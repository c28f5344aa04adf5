"""Smoothed curves: at each point the mean of the last points of its curve. No Streamlit.

Computed here and not in the browser, where it would stand in a chart's specification and take a second copy of the rows: a specification is
the same then for few points and for many, so that a chart which gets more of them stays where it is.
"""

from __future__ import annotations

import pandas as pd

LIVE_SHARE = 0.03  # of a curve's points that a smoothed one is the mean of, on Live


def with_smoothed(frame: pd.DataFrame, points: int, curve: str) -> pd.DataFrame:
    """The rows, and a column `smoothed`: the mean of the last `points` values of `mean`, or of all where fewer came before.

    `curve`: the column that tells the curves apart; the rows of each come in the order of x.
    """
    means = frame.groupby(curve, sort=False, observed=True)["mean"]
    return frame.assign(smoothed=means.transform(lambda values: values.rolling(points, min_periods=1).mean()))


def points_of(share: float, points: int) -> int:
    """How many points a smoothed one is the mean of, where a curve has at most so many."""
    return max(1, round(share * points))
