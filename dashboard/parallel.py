"""Parallel coordinates as rows: where each run crosses each axis, and what stands beside the axes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pandas as pd

MOST_TICKS = 5
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
    """Columns: run, axis (title), place (0 bottom to 1 top; NaN where not measured), text. A row for each run and axis."""
    return pd.DataFrame(
        [
            {"run": run, "axis": axis.title, "place": _place(axis, value), "text": axis.texts[run]}
            for axis in axes
            for run, value in axis.values.items()
        ],
        columns=["run", "axis", "place", "text"],
    )


def ticks(axes: list[Axis]) -> pd.DataFrame:
    """Values that runs really have, at their place on each axis; of many numbers the lowest, the highest and some between.

    Columns: axis, place, text.
    """
    rows = []
    for axis in axes:
        found = {_place(axis, value): axis.texts[run] for run, value in axis.values.items() if _is_known(value)}
        rows += [{"axis": axis.title, "place": place, "text": found[place]} for place in _spread_out(sorted(found))]
    return pd.DataFrame(rows, columns=["axis", "place", "text"])


def _place(axis: Axis, value: Any) -> float:
    if not _is_known(value):
        return math.nan
    known = [one for one in axis.values.values() if _is_known(one)]
    if isinstance(value, str):
        order = [choice for choice in axis.choices if choice in known] or sorted(set(known))
        return order.index(value) / (len(order) - 1) if len(order) > 1 else MIDDLE
    low, high = min(known), max(known)
    if low == high:
        return MIDDLE
    if low > 0 and high / low >= DECADES_FROM:
        return math.log(value / low) / math.log(high / low)
    return float((value - low) / (high - low))


def _spread_out(places: list[float]) -> list[float]:
    """At most MOST_TICKS of them, the first and the last among them, none nearer to another than a text is high."""
    least = 1.0 / (2 * MOST_TICKS)
    kept = places[:1]
    for place in places[1:-1]:
        if place - kept[-1] >= least and places[-1] - place >= least:
            kept.append(place)
    every = max(1, math.ceil((len(kept) - 1) / (MOST_TICKS - 2)))
    return [*kept[:1], *kept[1::every], *places[1:][-1:]]


def _is_known(value: Any) -> bool:
    return value is not None and not (isinstance(value, float) and math.isnan(value))
