"""The results of runs: which value is best, results in words, and rows of parallel coordinates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd

from gan_runtime.base import formats
from gan_runtime.base.metrics import Metric, Role
from gan_runtime.catalog.declarations import Declarations

Best = Literal["lowest", "highest", "none"]


@dataclass(frozen=True)
class Result:
    """`best`: which end is better; "none" if a better value does not mean better images."""

    title: str
    axis: str
    format: str
    best: Best = "none"

    def distance(self, value: float) -> float:
        """The distance from the best value; smaller is better, NaN where no value is better."""
        return {"lowest": value, "highest": -value}.get(self.best, math.nan)


# By the column of `queries.results`. Definitions: docs/metrics.md.
RESULTS: dict[str, Result] = {
    "score_gap_last": Result("Score gap, last epoch", "Score gap (0 = D cannot tell)", ".3f"),
    "accuracy_last": Result("D's accuracy, last epoch", "D's accuracy", ".1%"),
    "spread_ratio_last": Result("Spread ratio, last epoch", "Generated / real spread", ".3f"),
    "images_per_s": Result("Images per second", "Images/s", ",.0f"),
    "seconds": Result("Training time", "Training time (s)", ",.4~g"),
    "device_seconds": Result("Device time", "Device time (s)", ",.4~g"),
    "images": Result("Images seen", "Images seen", ".3~s"),
}
TIMES = ("seconds", "device_seconds")
# The role that a workload must have for a result, by the prefix of the result's column.
NEEDS: dict[str, Role] = {
    "score_gap": "judged_real",
    "accuracy": "accuracy_on_real",
    "spread_ratio": "spread_of_real",
}


def has(declaration: Declarations, name: str) -> bool:
    """Whether the workloads have the numbers that a result needs.

    `name`: of the result, with or without "_last".
    """
    role = NEEDS.get(name.removesuffix("_last"))
    return role is None or declaration.of_role(role) is not None


def results(declaration: Declarations) -> dict[str, Result]:
    """The results of runs of these workloads, by the column of `queries.results`."""
    losses = {
        loss.name: Result(f"{loss.title}, last step", loss.axis, loss.format)
        for loss in declaration.losses
    }
    qualities_first = sorted(
        declaration.rated, key=lambda metric: metric not in declaration.qualities
    )
    rated = {f"{metric.name}_best": rated_result(metric) for metric in qualities_first}
    return (
        rated
        | {name: result for name, result in RESULTS.items() if has(declaration, name)}
        | losses
    )


def rated_result(metric: Metric) -> Result:
    """The result of a rated number: its best epoch."""
    best: Best = "lowest" if metric.better == "lower" else "highest"
    return Result(f"{metric.title}, best epoch", metric.axis, metric.format, best)


GAP_HELP = (
    "Absolute difference between D's mean scores of real and of generated images, after the epoch."
    " It shows how hard the images are for D, not how good they are."
)
ACCURACY_HELP = (
    "Share of real and generated images that D classifies correctly, after the epoch. 50% is"
    " guessing, as an untrained D does."
)
SPREAD_HELP = (
    "Variance of a pixel over generated images, divided by that over real ones, after the epoch."
    " Far below 1, all images look alike. Noise can reach 1 too."
)
NO_BEST = (
    "A low loss of one network often means a high loss of the other. D's scores only show how hard"
    " the images are for D. So no value is best."
)
NO_QUALITY = "None of these numbers measures how good the images are: compare the samples."


def best_caption(declaration: Declarations) -> str:
    """The caption below the table: what none of its numbers shows."""
    return NO_BEST if declaration.qualities else f"{NO_BEST} {NO_QUALITY}"


def text(name: str, value: float) -> str:
    """A result in words with few digits; "–" if it was not measured."""
    if pd.isna(value):
        return "–"
    if name in TIMES:
        return formats.duration(value)
    if name in ("images_per_s", "images"):
        return formats.count(value)
    is_share = name in RESULTS and RESULTS[name].format.endswith("%")
    return formats.percent(value, 1) if is_share else f"{value:.3f}"


def front(frame: pd.DataFrame, name: str, result: Result | None = None) -> pd.DataFrame:
    """The Pareto front of `queries.results` in training time and one result, fastest first.

    Runs without one of the two are left out. The front is empty if no value is better, as with
    losses. `result`: which value is better, for a result that a workload declares.
    """
    measured = frame.dropna(subset=["seconds", name])
    judged = result or RESULTS.get(name) or Result("", "", "")
    measured = measured.assign(
        distance=[judged.distance(value) for value in measured[name]]
    ).dropna(subset=["distance"])
    ordered = measured.sort_values(["seconds", "distance"], kind="stable")
    best_before = ordered["distance"].cummin().shift(fill_value=math.inf)
    return ordered[ordered["distance"] < best_before].drop(columns="distance")


Side = Literal["left", "center", "right"]
# Width of a letter as a share of an axis on a narrow phone (300 pixels): values that would touch
# are left out.
LETTER = 7 / 300
SIDES: tuple[Side, ...] = ("left", "center", "right")
DECADES_FROM = 20.0  # an axis of positive numbers that spans this factor is logarithmic
MIDDLE = 0.5


@dataclass(frozen=True)
class Axis:
    """One vertical axis.

    `values`: run → number or choice; None if not measured. `texts`: run → value in words.

    `choices`: the order of text values, left to right; choices without a run take no place.
    """

    title: str
    values: dict[str, Any]
    texts: dict[str, str]
    choices: tuple[str, ...] = ()


def crossings(axes: list[Axis]) -> pd.DataFrame:
    """A row for each run and axis. Columns: run, axis (title), row (from 0), place (0 left to 1
    right; NaN if not measured), text.
    """
    return pd.DataFrame(
        [
            {
                "run": run,
                "axis": axis.title,
                "row": row,
                "place": _place(axis, value),
                "text": axis.texts[run],
            }
            for row, axis in enumerate(axes)
            for run, value in axis.values.items()
        ],
        columns=["run", "axis", "row", "place", "text"],
    )


def ticks(axes: list[Axis]) -> pd.DataFrame:
    """The values that runs have, at their place on each axis: the lowest, the highest, and those
    that fit between.

    Columns: axis, place, text, align (left, center or right of the place).
    """
    rows = []
    for axis in axes:
        texts = {
            _place(axis, value): axis.texts[run]
            for run, value in axis.values.items()
            if _is_known(value)
        }
        rows += [
            {"axis": axis.title, "place": place, "text": texts[place], "align": _side(place)}
            for place in _fitting(texts)
        ]
    return pd.DataFrame(rows, columns=["axis", "place", "text", "align"])


def _place(axis: Axis, value: Any) -> float:
    if not _is_known(value):
        return math.nan
    values = [number for number in axis.values.values() if _is_known(number)]
    if isinstance(value, str):
        unknown = sorted(set(values) - set(axis.choices))  # such as choices of a newer version
        order = [choice for choice in axis.choices if choice in values] + unknown
        return order.index(value) / (len(order) - 1) if len(order) > 1 else MIDDLE
    low, high = min(values), max(values)
    if low == high:
        return MIDDLE
    if low > 0 and high / low >= DECADES_FROM:
        return math.log(value / low) / math.log(high / low)
    return float((value - low) / (high - low))


def _fitting(texts: dict[float, str]) -> list[float]:
    """The places whose texts do not touch: the first, the last, and what fits between, from left
    to right.
    """
    places = sorted(texts)
    fitting = places[:1]
    for place in places[1:-1]:
        if _room(fitting[-1], place, texts) and _room(place, places[-1], texts):
            fitting.append(place)
    return [*fitting, *places[1:][-1:]]


def _room(left: float, right: float, texts: dict[float, str]) -> bool:
    return _extent(right, texts[right])[0] - _extent(left, texts[left])[1] >= LETTER


def _extent(place: float, text: str) -> tuple[float, float]:
    """Where a text begins and ends, as shares of the axis."""
    width = LETTER * len(text)
    begin = place - {"left": 0.0, "center": width / 2, "right": width}[_side(place)]
    return begin, begin + width


def _side(place: float) -> Side:
    """A text near an end of the axis extends inwards, so that the chart's edge does not cut it."""
    return "left" if place < 0.2 else "right" if place > 0.8 else "center"


def _is_known(value: Any) -> bool:
    return value is not None and not (isinstance(value, float) and math.isnan(value))
