"""Runs a network on the tiles of images, in several ways. The engines have the programs (tiles.py
of each).

The outcome of a tile depends on that tile alone, to the last bit: not on the number of tiles, their
grouping or order, nor on the number of cores. The networks run in inference mode, and a program
takes the tiles of a core in rounds of equal size, in a loop whose body is compiled for one round:
for a batch of another size the kernels, and so the rounding of sums, could differ. The last tile
pads the last round.
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
    Sides,
    TileGrid,
    TileMerge,
    group_tiles,
    split_tiles,
    tiles_per_core,
    ungroup_tiles,
)
from gan_runtime.spec import RunSpec
from gan_runtime.workloads.contract import Options, Tensor, Translates

# | way | |
# |---|---|
# | naive | one core, round by round: one call of the device for each |
# | map_reduce | rounds on all cores, ONE program over all of them, one call for the image |
# | whole | the whole image on one core, padded below and to the right as the network needs |
Way = Literal["naive", "map_reduce", "whole"]
WAYS: tuple[Way, ...] = ("naive", "map_reduce", "whole")

PREPARATION = "preparation"  # split, group, pad
TRANSFER_IN, TRANSFER_OUT = "transfer_in", "transfer_out"  # host to devices, and back
TRACE, COMPILE = "trace", "compile"  # once per program
EXECUTE = "execute"
MERGE = "merge"
STAGES = (PREPARATION, TRANSFER_IN, TRACE, COMPILE, EXECUTE, TRANSFER_OUT, MERGE)
ONCE = (TRACE, COMPILE)


Clock = Callable[[], float]


@dataclass(frozen=True)
class StageTime:
    """`seconds`: of all calls; `times`: number of images, or 1 for a stage that occurs once per
    program; `median_s`: of one call.
    """

    stage: str
    seconds: float
    times: int
    median_s: float


class Stopwatch:
    """Measures the seconds of each stage by the host's clock.

    Times of a stage that occurs several times in an image, as a call per tile, are added up.
    """

    def __init__(self, clock: Clock = time.perf_counter) -> None:
        self._clock = clock
        self._once = dict.fromkeys(ONCE, 0.0)
        self._images: list[dict[str, float]] = []

    def next_image(self) -> None:
        """Later stages belong to a new image."""
        self._images.append(dict.fromkeys(STAGES, 0.0))

    @contextmanager
    def of(self, stage: str) -> Iterator[None]:
        """Adds the time until its end to a stage; stages of a program may precede all images."""
        begin = self._clock()
        yield
        seconds = self._clock() - begin
        (self._once if stage in ONCE else self._images[-1])[stage] += seconds

    def add(self, stage: str, seconds: float) -> None:
        """Adds separately measured seconds to a stage of the program."""
        self._once[stage] += seconds

    def times(self) -> list[StageTime]:
        """The times of every stage, in order."""
        return [self._time(stage) for stage in STAGES]

    def image_s(self) -> float:
        """Median over the images of the sum of all their stages, without those of the program."""
        return statistics.median(sum(image.values()) for image in self._images)

    def _time(self, stage: str) -> StageTime:
        seconds = [self._once[stage]] if stage in ONCE else [image[stage] for image in self._images]
        return StageTime(stage, sum(seconds), len(seconds), statistics.median(seconds))


ImageArray = NDArray[np.float32]  # (height, width, channels)
Shape = tuple[int, ...]
Rounds = NDArray[np.int32]
# Tiles per round. A round reads the weights once, and calls as many operations as for one tile.
# With 6 tiles, which cover a frame of the vortex street, each of 2 cores has one round.
ROUND = 3


@dataclass(frozen=True)
class Translator:
    """The image-to-image network of a run, with the weights of a checkpoint.

    `arrays`: by the paths of its variables.
    """

    workload: Translates
    options: Options
    fields: Fields
    name: str
    precision: str
    arrays: Mapping[str, NDArray[Any]]

    def network(self) -> Any:
        """A new keras model with initial weights; the caller has set the precision."""
        return self.workload.networks(self.options, self.fields)[self.name]

    @cached_property
    def shared(self) -> Any:
        """One model for all programs, where weights are arguments: a model takes longer to build
        than a program to compile.
        """
        return self.network()

    def __call__(self, network: Any, source: Tensor) -> Tensor:
        """`Translates.translate` with this workload and network."""
        return self.workload.translate(self.options, {self.name: network}, source)

    @property
    def tile(self) -> int:
        """The side of its tiles, in pixels."""
        return self.workload.tile(self.options, self.fields)


def translator_of(
    spec: RunSpec, workload: Translates, fields: Fields, arrays: Arrays
) -> Translator:
    """The translator of a run, from the arrays of a checkpoint; with `samples_from=ema`, of the
    average.

    `fields`: the fields that the workload reads.
    """
    name = spec.entry.averages[0]
    begin = f"{AVERAGE if spec.samples_from == 'ema' else name}/"
    arrays = {
        path.removeprefix(begin): array for path, array in arrays.items() if path.startswith(begin)
    }
    return Translator(workload, spec.of_workload, fields, name, spec.precision, arrays)


class TileProgram(Protocol):
    """One program over `cores` cores; the constructor traces and compiles it."""

    def __init__(
        self, translator: Translator, cores: int, tiles: Shape, stopwatch: Stopwatch
    ) -> None:
        """`tiles`: (most rounds of a core, tiles of a round, height, width, channels)."""
        ...

    def __call__(self, tiles: NDArray[np.float32], rounds: Rounds) -> NDArray[np.float32]:
        """(cores · share, height, width, channels in) → (cores · share, height, width, channels
        out), where a share is the tiles of all rounds; core k has those from k · share on.
        `rounds`: (cores,), of each core; later tiles have no defined outcome.
        """
        ...


class TiledTranslator:
    """Translates an image in one way.

    `program`: the engine's TileProgram; `source`: (height, width, channels) of all images.
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
        self._image: Sides = (source[0], source[1])
        tile = translator.tile
        self.grid = (
            whole_image_grid(self._image, tile)
            if way == "whole"
            else TileGrid(self._image, (tile, tile), overlap)
        )
        self._merge = TileMerge(self.grid, blend)
        size = 1 if way == "whole" else ROUND
        rounds = -(-len(self.grid) // size)
        each = 1 if way == "naive" else tiles_per_core(rounds, self.cores)
        shape = (each, size, *self.grid.tile, source[2])
        self._program = program(translator, self.cores, shape, self.stopwatch)
        self._at_once = each * size * self.cores
        remaining = (1 if way == "naive" else rounds) - each * np.arange(self.cores)
        self._rounds = np.clip(remaining, 0, each).astype(np.int32)

    def __call__(self, source: ImageArray) -> ImageArray:
        """(height, width, channels in) → (height, width, channels out)."""
        watch, count = self.stopwatch, len(self.grid)
        watch.next_image()
        with watch.of(PREPARATION):
            tiles = split_tiles(pad_image(source, self.grid.image), self.grid)
            groups = group_tiles(tiles, self._at_once).reshape(-1, self._at_once, *tiles.shape[1:])
        parts = [self._program(group, self._rounds) for group in groups]
        outcome = parts[0] if len(parts) == 1 else np.concatenate(parts)
        with watch.of(MERGE):
            height, width = self._image
            return self._merge(ungroup_tiles(outcome, count))[:height, :width]


def whole_image_grid(image: Sides, tile: int) -> TileGrid:
    """One tile for the whole image; its sides are rounded up to multiples of `tile`."""
    height, width = (side + -side % tile for side in image)
    return TileGrid((height, width), (height, width))


def pad_image(image: ImageArray, sides: Sides) -> ImageArray:
    """Repeats the last row and column, below and to the right."""
    missing = [(0, target - side) for target, side in zip(sides, image.shape, strict=False)]
    return np.pad(image, [*missing, (0, 0)], mode="edge") if any(map(sum, missing)) else image
