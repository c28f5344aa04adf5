"""From turns to figures: the median of the ratios of neighboring turns, and their spread."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.turns import Turn


@dataclass(frozen=True)
class Spread:
    """Median, quartiles and extremes of `count` values, in their unit."""

    value: float
    quartile_1: float
    quartile_3: float
    lowest: float
    highest: float
    count: int


def spread(values: Sequence[float]) -> Spread:
    """Quartiles interpolate linearly; one value is its own median and quartiles.

    Raises ValueError without values.
    """
    if not values:
        raise ValueError("a spread needs at least one value")
    first, middle, third = (
        statistics.quantiles(values, n=4, method="inclusive")
        if len(values) > 1
        else list(values) * 3
    )
    return Spread(middle, first, third, min(values), max(values), len(values))


def speed_ratios(ours: Sequence[Turn], theirs: Sequence[Turn]) -> list[float]:
    """The speed of ours over the peer's, turn by turn, for steps of the same size; above 1, ours is
    faster.
    """
    return [their.step_s / our.step_s for our, their in zip(ours, theirs, strict=True)]


def speed_ratio_of_totals(ours: Sequence[Turn], theirs: Sequence[Turn]) -> float:
    """The same from the total steps and seconds of each side, so that slow turns, such as those
    with probes, have their full weight.
    """
    return total(theirs).step_s / total(ours).step_s


def total(turns: Sequence[Turn]) -> Turn:
    """The sum of all turns."""
    return Turn(sum(turn.steps for turn in turns), sum(turn.seconds for turn in turns))


@dataclass(frozen=True)
class Overhead:
    """The cost of a full run beyond its bare steps, as shares of the bare time (0.02 is 2%).

    `streaming`: in turns within epochs. `epoch_end_s`: seconds of probes, grid and checkpoint;
    `epoch_end`: the same, as a share of an epoch.
    """

    streaming: Spread
    epoch_end_s: float
    epoch_end: float
    of_totals: float

    @property
    def share(self) -> float:
        """The total of both medians, which one disturbed turn does not decide."""
        return self.streaming.value + self.epoch_end


def overhead(
    full: Sequence[Turn], bare: Sequence[Turn], ends_epoch: Sequence[bool], steps_per_epoch: int
) -> Overhead:
    """Compares turns in pairs. `ends_epoch`: whether the full run ended an epoch in that turn.

    Raises:
        ValueError: no turn ended an epoch, or every one did: use shorter turns, or more of them.
    """
    if all(ends_epoch) or not any(ends_epoch):
        raise ValueError(
            "overhead needs turns within an epoch and turns that end one: use shorter turns, or"
            " more of them"
        )
    streaming = spread(
        [
            f.step_s / b.step_s - 1.0
            for f, b, ends in zip(full, bare, ends_epoch, strict=True)
            if not ends
        ]
    )
    bare_step_s = statistics.median(turn.step_s for turn in bare)
    extra = [
        f.seconds - f.steps * b.step_s * (1.0 + streaming.value)
        for f, b, ends in zip(full, bare, ends_epoch, strict=True)
        if ends
    ]
    epoch_end_s = statistics.median(extra)
    return Overhead(
        streaming,
        epoch_end_s,
        epoch_end_s / (steps_per_epoch * bare_step_s),
        total(full).step_s / total(bare).step_s - 1.0,
    )
