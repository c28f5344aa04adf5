"""Parallel coordinates as rows: where each run crosses each axis, and what stands beside the axes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd

Side = Literal["left", "center", "right"]
# Width of a letter of a value as a share of an axis on a narrow phone (300 pixels): values that would touch are left out.
LETTER = 7 / 300
SIDES: tuple[Side, ...] = ("left", "center", "right")
DECADES_FROM = 20.0  # an axis of positive numbers that spans this factor is logarithmic
MIDDLE = 0.5


@dataclass(frozen=True)
class Axis:
    """One vertical axis. `values`: run → number, or a choice as text; None was not measured. `texts`: run → in words.

    `choices`: the order of text values, bottom to top; those that no run has get no place.
    """

    title: str
    values: dict[str, Any]
    texts: dict[str, str]
    choices: tuple[str, ...] = ()


def crossings(axes: list[Axis]) -> pd.DataFrame:
    """Columns: run, axis (title), row (from 0), place (0 left to 1 right; NaN where not measured), text. A row a run and axis."""
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
    """Values that runs really have, at their place on each axis; of many the lowest, the highest and those that fit between.

    Columns: axis, place, text, align (left, center or right of the place).
    """
    rows = []
    for axis in axes:
        found = {
            _place(axis, value): axis.texts[run] for run, value in axis.values.items() if _is_known(value)
        }
        rows += [
            {"axis": axis.title, "place": place, "text": found[place], "align": _side(place)}
            for place in _fitting(found)
        ]
    return pd.DataFrame(rows, columns=["axis", "place", "text", "align"])


def _place(axis: Axis, value: Any) -> float:
    if not _is_known(value):
        return math.nan
    known = [one for one in axis.values.values() if _is_known(one)]
    if isinstance(value, str):
        unknown = sorted(set(known) - set(axis.choices))  # such as choices of a newer version
        order = [choice for choice in axis.choices if choice in known] + unknown
        return order.index(value) / (len(order) - 1) if len(order) > 1 else MIDDLE
    low, high = min(known), max(known)
    if low == high:
        return MIDDLE
    if low > 0 and high / low >= DECADES_FROM:
        return math.log(value / low) / math.log(high / low)
    return float((value - low) / (high - low))


def _fitting(texts: dict[float, str]) -> list[float]:
    """The places whose texts do not touch: the first, the last, and from left to right what fits between them."""
    places = sorted(texts)
    kept = places[:1]
    for place in places[1:-1]:
        if _room(kept[-1], place, texts) and _room(place, places[-1], texts):
            kept.append(place)
    return [*kept, *places[1:][-1:]]


def _room(left: float, right: float, texts: dict[float, str]) -> bool:
    return _extent(right, texts[right])[0] - _extent(left, texts[left])[1] >= LETTER


def _extent(place: float, text: str) -> tuple[float, float]:
    """From where to where a text reaches, as shares of the axis."""
    width = LETTER * len(text)
    begin = place - {"left": 0.0, "center": width / 2, "right": width}[_side(place)]
    return begin, begin + width


def _side(place: float) -> Side:
    """A text near an end of the axis reaches inwards, so that the chart's edge does not cut it."""
    return "left" if place < 0.2 else "right" if place > 0.8 else "center"


def _is_known(value: Any) -> bool:
    return value is not None and not (isinstance(value, float) and math.isnan(value))
