"""A network on the tiles of pictures, in one of several ways; the programs that do it are the
engines' own (…/tiles.py).

What becomes of a tile depends on that tile alone, to the last bit: not on how many there are, not
on their grouping, not on its place, and not on the number of cores. The networks are asked in
inference mode, and a program takes the tiles of a core in rounds of always as many, in a loop whose
body is compiled for one round: a batch of another size could be computed by other kernels, whose
sums round otherwise. What is missing in the last round is filled up with the last tile.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.fields import Fields
from gan_runtime.engines.contract import AVERAGE, Arrays
from gan_runtime.engines.tile_grid import (
    Blend,
    Division,
    Merging,
    Sides,
    divided,
    grouped,
    share,
    ungrouped,
)
from gan_runtime.spec import RunSpec
from gan_runtime.workloads.contract import Options, Tensor, Translates

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
WAYS: tuple[Way, ...] = ("naive", "map_reduce", "whole")

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


Picture = NDArray[np.float32]  # (height, width, channels)
Shape = tuple[int, ...]
Rounds = NDArray[np.int32]
# Tiles of a round. The weights are read once for all of them, and as many operations are called as
# for one; 2 cores and 6 tiles, which cover a frame of the vortex street, make one round each.
ROUND = 3


@dataclass(frozen=True)
class Translator:
    """A run's network that makes pictures of pictures, with the weights of a checkpoint.

    `arrays`: by the paths of its variables.
    """

    workload: Translates
    options: Options
    fields: Fields
    name: str
    precision: str
    arrays: Mapping[str, NDArray[Any]]

    def network(self) -> Any:
        """A new keras model, with the weights that its initializers give; the caller has set
        the precision.
        """
        return self.workload.networks(self.options, self.fields)[self.name]

    @cached_property
    def shared(self) -> Any:
        """One model for all programs, for engines whose weights travel as arguments: making
        one takes longer than compiling for it.
        """
        return self.network()

    def __call__(self, network: Any, source: Tensor) -> Tensor:
        """See `Translates.translate`."""
        return self.workload.translate(self.options, {self.name: network}, source)

    @property
    def tile(self) -> int:
        """Side of its tiles in pixels."""
        return self.workload.tile(self.options, self.fields)


def translator_of(
    spec: RunSpec, workload: Translates, fields: Fields, arrays: Arrays
) -> Translator:
    """Of a run, as one of its checkpoints has it.

    `fields`: those that the workload reads; with samples_from=ema it is the average.
    """
    name = spec.entry.averages[0]
    begin = f"{AVERAGE if spec.samples_from == 'ema' else name}/"
    own = {
        path.removeprefix(begin): array for path, array in arrays.items() if path.startswith(begin)
    }
    return Translator(workload, spec.of_workload, fields, name, spec.precision, own)


class TileProgram(Protocol):
    """One program over `cores` cores.

    It is traced and compiled when it is made, which the stopwatch is told.
    """

    def __init__(
        self, translator: Translator, cores: int, tiles: Shape, stopwatch: Stopwatch
    ) -> None:
        """`tiles`: (rounds of each core at most, tiles of a round, height, width, channels)."""
        ...

    def __call__(self, tiles: NDArray[np.float32], rounds: Rounds) -> NDArray[np.float32]:
        """(cores · share, height, width, channels in) → (cores · share, height, width, channels
        out), where a share are the tiles of all rounds; core k has those from k · share on.
        `rounds`: (cores,), of each core; what lies behind them comes out as it may.
        """
        ...


class Painter:
    """Makes a picture of a picture in one way.

    `program`: the engine's TileProgram; `source`: (height, width, channels) of all pictures.
    """

    def __init__(
        self,
        program: type[TileProgram],
        translator: Translator,
        way: Way,
        source: Shape,
        cores: int = 1,
        overlap: int = 0,
        blend: Blend = "none",
    ) -> None:
        self.way, self.stopwatch = way, Stopwatch()
        self.cores = cores if way == "map_reduce" else 1
        self._picture: Sides = (source[0], source[1])
        tile = translator.tile
        self.division = (
            whole(self._picture, tile)
            if way == "whole"
            else Division(self._picture, (tile, tile), overlap)
        )
        self._merging = Merging(self.division, blend)
        size = 1 if way == "whole" else ROUND
        rounds = -(-len(self.division) // size)
        each = 1 if way == "naive" else share(rounds, self.cores)
        shape = (each, size, *self.division.tile, source[2])
        self._program = program(translator, self.cores, shape, self.stopwatch)
        self._at_once = each * size * self.cores
        left = (1 if way == "naive" else rounds) - each * np.arange(self.cores)
        self._rounds = np.clip(left, 0, each).astype(np.int32)

    def __call__(self, source: Picture) -> Picture:
        """(height, width, channels in) → (height, width, channels out)."""
        watch, count = self.stopwatch, len(self.division)
        watch.next_picture()
        with watch.of(PREPARATION):
            tiles = divided(filled_up(source, self.division.picture), self.division)
            groups = grouped(tiles, self._at_once).reshape(-1, self._at_once, *tiles.shape[1:])
        parts = [self._program(group, self._rounds) for group in groups]
        painted = parts[0] if len(parts) == 1 else np.concatenate(parts)
        with watch.of(MERGE):
            height, width = self._picture
            return self._merging(ungrouped(painted, count))[:height, :width]


def whole(picture: Sides, tile: int) -> Division:
    """One tile, as large as the picture; its sides are filled up to multiples of `tile`."""
    height, width = (side + -side % tile for side in picture)
    return Division((height, width), (height, width))


def filled_up(picture: Picture, sides: Sides) -> Picture:
    """With its last row and column again, below and to the right."""
    missing = [(0, wanted - there) for wanted, there in zip(sides, picture.shape, strict=False)]
    return np.pad(picture, [*missing, (0, 0)], mode="edge") if any(map(sum, missing)) else picture
