"""Seconds of the stages of many pictures, by a clock of the host."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

# ----------------------------------------------------------------------
# In which ways a picture is given to a network, and into which stages the time of that is divided.
#
# | way | |
# |---|---|
# | naive | one core, round by round (engines/tiles.py): one call of the device for each |
# | map_reduce | the rounds shared out among the cores, ONE program over all of them, one call for
# the picture |
# | whole | the picture at once, on one core, filled up at its lower and right end to what the
# network takes |

Way = Literal["naive", "map_reduce", "whole"]
Blend = Literal["none", "hann"]
WAYS: tuple[Way, ...] = ("naive", "map_reduce", "whole")
BLENDS: tuple[Blend, ...] = ("none", "hann")

PREPARATION = "preparation"  # dividing, grouping, filling up
TRANSFER_IN, TRANSFER_OUT = "transfer_in", "transfer_out"  # host to devices, and back
TRACE, COMPILE = "trace", "compile"  # once a program
EXECUTE = "execute"
MERGE = "merge"
STAGES = (PREPARATION, TRANSFER_IN, TRACE, COMPILE, EXECUTE, TRANSFER_OUT, MERGE)
ONCE = (TRACE, COMPILE)


Clock = Callable[[], float]


@dataclass(frozen=True)
class StageTime:
    """`seconds`: of all calls; `times`: pictures, or 1 for what is done once a program;
    `median_s`: of one of them.
    """

    stage: str
    seconds: float
    times: int
    median_s: float


class Stopwatch:
    """A stage that comes several times within a picture, as each tile's call does, counts
    together for that picture.
    """

    def __init__(self, clock: Clock = time.perf_counter) -> None:
        self._clock = clock
        self._once = dict.fromkeys(ONCE, 0.0)
        self._pictures: list[dict[str, float]] = []

    def next_picture(self) -> None:
        """From here on stages are those of another picture."""
        self._pictures.append(dict.fromkeys(STAGES, 0.0))

    @contextmanager
    def of(self, stage: str) -> Iterator[None]:
        """Adds the time until its end to a stage.

        What is done once may come before the first picture.
        """
        begin = self._clock()
        yield
        seconds = self._clock() - begin
        (self._once if stage in ONCE else self._pictures[-1])[stage] += seconds

    def add(self, stage: str, seconds: float) -> None:
        """Of a stage that is done once and was reckoned otherwise."""
        self._once[stage] += seconds

    def times(self) -> list[StageTime]:
        """Of every stage, in their order."""
        return [self._time(stage) for stage in STAGES]

    def picture_s(self) -> float:
        """Median over the pictures of all their stages together, without those that are done
        once.
        """
        return statistics.median(sum(picture.values()) for picture in self._pictures)

    def _time(self, stage: str) -> StageTime:
        seconds = (
            [self._once[stage]] if stage in ONCE else [picture[stage] for picture in self._pictures]
        )
        return StageTime(stage, sum(seconds), len(seconds), statistics.median(seconds))
