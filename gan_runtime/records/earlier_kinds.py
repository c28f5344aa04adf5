"""The kinds of records in which version 0.2.0 wrote what jobs measure of a checkpoint, one for each
evaluation, and its names on disk.

Journals hold them still; they are taken in as answers (earlier_answers.py). `physics`: showers that
a run's networks generate, beside real ones. `flow`: a run's model iterated, its picture its own
next source, beside the true pictures; one record for each way in which the pictures were made
(engines/tiles.py), those of one job with its id in common, `iteration`. `surface`: the
losses along the path of the weights.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from gan_runtime.records.record import MOST_STEPS, Count, Name, Rank, Record, Step, agree

# Names on disk: journals of single kinds of evaluations, and the folder of the films of rollouts.
JOURNALS = ("surface", "physics", "flow")
FILMS_FOLDER = "flow"
MOST_CELLS = 10_000_000  # of a grid, so that no page makes room for more than it has
Side = Literal["real", "generated"]
Axis = Annotated[int, Field(ge=1, le=10_000)]
Bounds = tuple[float, float]


class PhysicsScore(BaseModel):
    """A score of generated beside real showers, and under `floor` the same of other real ones;
    errors are one standard deviation. NaN: there is none.
    """

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")
    name: Name
    value: float
    error: float = math.nan
    floor: float = math.nan
    floor_error: float = math.nan


class PhysicsCurve(BaseModel):
    """Means or shares over `x` of real and generated showers, with standard deviations.

    `energy`: from and to, GeV; `angle`: rad; None for all showers. `y`: of a map the second place
    of each number; else empty, as in records from before there were maps.
    """

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")
    name: Name
    energy: Bounds | None = None
    angle: Bounds | None = None
    x: list[float]
    y: list[float] = Field(default_factory=list)
    real: list[float]
    real_error: list[float]
    generated: list[float]
    generated_error: list[float]

    @model_validator(mode="after")
    def _one_number_a_place(self) -> Self:
        agree(
            self.x,
            self.y or self.x,
            self.real,
            self.real_error,
            self.generated,
            self.generated_error,
        )
        return self


class PhysicsShower(BaseModel):
    """One shower: its brightest cells, by their place in the flat grid, in MeV.

    `pair`: the real and the generated one of a pair were asked for with the same energy and angle.
    `share`: how much of the shower's energy these cells hold.
    """

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")
    pair: Count
    side: Side
    energy_gev: float
    angle: float | None
    cells: list[Count]
    mev: list[float]
    share: float

    @model_validator(mode="after")
    def _one_energy_a_cell(self) -> Self:
        agree(self.cells, self.mev)
        return self


class Physics(Record):
    """One checkpoint of a run, measured.

    `grid`: cells along x, y and z; `periodic`: axes that close on themselves; `checkpoint`: which
    it was, such as "best"; `showers`: how many were compared.
    """

    is_numbers_only = True

    kind: Literal["physics"] = "physics"
    epoch: Step
    step: Step
    checkpoint: Name
    showers: Count
    grid: tuple[Axis, Axis, Axis]
    periodic: list[Annotated[int, Field(ge=0, le=2)]] = Field(default_factory=list)
    scores: list[PhysicsScore]
    curves: list[PhysicsCurve]
    pictures: list[PhysicsShower]

    @model_validator(mode="after")
    def _cells_of_the_grid(self) -> Self:
        check_cells(self.grid, self.pictures)
        return self


def check_cells(grid: tuple[int, int, int], pictures: list[PhysicsShower]) -> None:
    """Raises ValueError when a grid is too large, or a shower lies beyond it."""
    size = math.prod(grid)
    if size > MOST_CELLS:
        raise ValueError(f"grid must have at most {MOST_CELLS:,} cells")
    if any(cell >= size for shower in pictures for cell in shower.cells):
        raise ValueError("pictures must lie in the grid")


Way = Literal["naive", "map_reduce", "whole"]
Blend = Literal["none", "hann"]
Pixels = Annotated[int, Field(ge=1, le=100_000)]
Title = Annotated[str, Field(max_length=120)]
FramesFile = Annotated[str, Field(pattern=r"^(flow/[a-z0-9_-]{1,120}\.npz)?$")]


class FlowScore(BaseModel):
    """A single number of all steps together.

    `reference`: what domains/flows/score_metrics.py says; `replay`: the same of the replay of the
    nearest training film; NaN: there is none.
    """

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")
    name: Name
    value: float
    reference: float = math.nan
    replay: float = math.nan


class FlowSeries(BaseModel):
    """A number a step, from step `first` on: of the prediction, of the copied start frame
    (persistence), of the true frames, and of the replay of the nearest training film, NaN from its
    end on. Empty: there is no such number.
    """

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")
    name: Name
    first: Annotated[int, Field(ge=0, le=1)] = 1
    values: list[float]
    persistence: list[float] = Field(default_factory=list)
    truth: list[float] = Field(default_factory=list)
    replay: list[float] = Field(default_factory=list)

    @model_validator(mode="after")
    def _one_number_a_step(self) -> Self:
        others = (numbers or self.values for numbers in (self.persistence, self.truth, self.replay))
        agree(self.values, *others)
        return self


class FlowStage(BaseModel):
    """Seconds that one stage took: of all its calls, and the median of one."""

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")
    name: Name
    seconds: float
    times: Count
    median_s: float


class Flow(Record):
    """A checkpoint's model, iterated `steps` times in one way.

    `checkpoint`: which it was, such as "best", or "epoch 3" where it was weights that the run has
    kept. `cores`: that shared the tiles. `tile`, `overlap`: pixels; `tiles`: how many cover the
    picture; of the way "whole" one, as large as the padded picture. `grid`: height, width,
    channels. `reynolds`: of the held-out trajectory, None for pictures; `trajectory`: which of
    those held out, from 0; `start`: the frame in it that was given.
    `is_usual`: whether the question is the usual one, which can be compared with that of other
    runs: the first trajectory from its first frame on, as many steps as are taken where nobody says
    how many. `solver_steps`: between two frames, None for pictures. `film`: the trajectory in
    words, such as "Re 140, width 14", and `obstacle_width` of it, in cells; "" and None in records
    of version 0.2.0. `replay`: the nearest training film, and from which frame on; "" without.
    `frames`: the file of truth and prediction in the run's folder, "" without.
    """

    is_numbers_only = True

    kind: Literal["flow"] = "flow"
    iteration: Name
    way: Way
    epoch: Step
    step: Step
    checkpoint: Name
    engine: Name
    cores: Rank
    tile: tuple[Pixels, Pixels]
    overlap: Count
    blend: Blend
    tiles: Count
    grid: tuple[Pixels, Pixels, Pixels]
    reynolds: float | None = None
    trajectory: Count
    start: Count
    steps: Annotated[int, Field(ge=1, le=MOST_STEPS)]
    is_usual: bool = False
    solver_steps: Annotated[Count, Field(ge=1)] | None = None
    film: Title = ""
    obstacle_width: Annotated[float, Field(gt=0, le=100_000)] | None = None
    replay: Title = ""
    scores: list[FlowScore]
    by_step: list[FlowSeries]
    stages: list[FlowStage]
    frames: FramesFile = ""

    @model_validator(mode="after")
    def _a_number_for_each_step(self) -> Self:
        for series in self.by_step:
            if len(series.values) != self.steps + 1 - series.first:
                raise ValueError(f"{series.name} must have a number for each of {self.steps} steps")
        return self


class Surface(Record):
    """The loss of a network in nats on the plane of its weights' path (evaluation/loss_surface.py),
    and the path itself.

    `loss`: row after row, `x` fastest, on the grid of `x` and `y`; `path_loss`: at the points of
    the path, as they lie in the plane. `share_x`, `share_y`: of all squared movement of the
    weights, along each axis. `images`: real ones looked at.
    """

    kind: Literal["surface"] = "surface"
    network: Name
    x: list[float]
    y: list[float]
    loss: list[float]
    path_epoch: list[Step]
    path_x: list[float]
    path_y: list[float]
    path_loss: list[float]
    share_x: float
    share_y: float
    images: Count

    @model_validator(mode="after")
    def _whole_grid_and_path(self) -> Self:
        if len(self.loss) != len(self.x) * len(self.y):
            raise ValueError("loss must have a number for each point of the grid")
        agree(self.path_epoch, self.path_x, self.path_y, self.path_loss)
        return self


Earlier = Physics | Flow | Surface
EARLIER: tuple[type[Record], ...] = (Physics, Flow, Surface)
