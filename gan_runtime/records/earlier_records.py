"""The evaluation records of version 0.2.0, one kind per evaluation, and their conversion to
answers.

`physics`: generated against simulated showers. `flow`: a rollout, one record for each way of tiling
(`iteration` is common to those of one job). `surface`: losses along the path of the weights.

Views of a domain are built on these names, so its evaluations use them too:

| Kind | evaluation | key | facts | curves | arrays |
|---|---|---|---|---|---|
| physics | physics | `epoch 3` | showers, grid, periodic | x, y; series real, generated; facts
energy, angle: [from, to] | real, generated: brightest cells in MeV; facts pair, energy_gev, angle,
share |
| flow | rollout | `rollout_key` | scalar fields of `Flow` | by step; series prediction,
persistence, truth, replay; `stages`: series seconds, times, median_s, facts names | frames:
the file |
| surface | loss_surface | the network | network, images, share_x, share_y | loss: a map with facts
columns; path: series loss, epoch | |

Scores of a rollout have the baselines `reference` and `replay`. Metrics of the run have the prefix
physics_ or flow_. Only rollouts with default settings give metrics, and tiles take precedence over
the whole image.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from gan_runtime.records.answer import EPOCH_PREFIX, Answer, ArrayFile, Curve, CurveSeries, Score
from gan_runtime.records.record import MOST_STEPS, Count, Name, Rank, Record, Step, agree

MOST_CELLS = 10_000_000  # of a grid; limits the memory of a page
Side = Literal["real", "generated"]
Axis = Annotated[int, Field(ge=1, le=10_000)]
Bounds = tuple[float, float]


class PhysicsScore(BaseModel):
    """A score of generated against simulated showers; `floor`: of simulated against simulated.
    Errors are one standard deviation; NaN: not measured.
    """

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")
    name: Name
    value: float
    error: float = math.nan
    floor: float = math.nan
    floor_error: float = math.nan


class PhysicsCurve(BaseModel):
    """Means or shares over `x`, with standard deviations.

    `energy` in GeV and `angle` in rad: limits; None for all showers. `y`: second coordinate of a
    map, else empty.
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
    """The brightest cells of one shower in MeV, by their index in the flat grid.

    `pair`: one simulated and one generated shower of the same energy and angle. `share`: of the
    shower's energy in these cells.
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
    """`grid`: cells along x, y and z; `periodic`: circular axes; `showers`: number of showers."""

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
    """Raises ValueError if a grid is too large, or a shower lies outside it."""
    size = math.prod(grid)
    if size > MOST_CELLS:
        raise ValueError(f"grid must have at most {MOST_CELLS:,} cells")
    if any(cell >= size for shower in pictures for cell in shower.cells):
        raise ValueError("pictures must be in the grid")


Way = Literal["naive", "map_reduce", "whole"]
Blend = Literal["none", "hann"]
Pixels = Annotated[int, Field(ge=1, le=100_000)]
Title = Annotated[str, Field(max_length=120)]
FramesFile = Annotated[str, Field(pattern=r"^(flow/[a-z0-9_-]{1,120}\.npz)?$")]


class FlowScore(BaseModel):
    """A score over all steps. `reference`: the score of its baseline; `replay`: the score of the
    nearest training film; NaN where not measured.
    """

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")
    name: Name
    value: float
    reference: float = math.nan
    replay: float = math.nan


class FlowSeries(BaseModel):
    """One number per step from step `first` on: for the prediction, the copied start frame
    (persistence), the true frames, and the nearest training film (replay), which is NaN beyond its
    end.
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
        series = (numbers or self.values for numbers in (self.persistence, self.truth, self.replay))
        agree(self.values, *series)
        return self


class FlowStage(BaseModel):
    """The seconds of all calls of one stage, and the median of a call."""

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")
    name: Name
    seconds: float
    times: Count
    median_s: float


class Flow(Record):
    """A rollout of `steps` steps.

    `checkpoint`: such as "best", or "epoch 3" for snapshots. `cores`: number of cores that shared
    the tiles. `tile`, `overlap`: in pixels; `tiles`: their number, 1 for the way "whole". `grid`:
    height, width, channels. `trajectory`: index of the held-out trajectory, with its `reynolds`
    number (None for images) and `start` frame. `is_usual`: whether trajectory, start and steps are
    the defaults, which are comparable between runs. `solver_steps`: solver steps between two
    frames. `film`: label of the trajectory; `obstacle_width`: in cells. `replay`: nearest training
    film and its first frame. `frames`: file with truth and prediction, or "".
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
    """The loss of a network in nats on the plane of its weights' path, and the path.

    `loss`: on the grid of `x` and `y`, `x` fastest; `path_loss`: at the points of the path.
    `share_x`, `share_y`: shares of all squared movement of the weights. `images`: number of images.
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


_FLOW_FACTS = (
    *(
        "iteration",
        "way",
        "engine",
        "cores",
        "tile",
        "overlap",
        "blend",
        "tiles",
        "grid",
        "reynolds",
        "trajectory",
    ),
    *("start", "steps", "is_usual", "solver_steps", "film", "obstacle_width", "replay"),
)


def answer_of(record: Earlier) -> Answer:
    """The measurement as an answer."""
    match record:
        case Physics():
            return _of_physics(record)
        case Flow():
            return _of_flow(record)
        case Surface():
            return _of_surface(record)


def rollout_key(record: Flow) -> str:
    """The key of a rollout's answer, equal for rollouts with the same start frame, steps and tiles.

    A snapshot's answer never replaces a checkpoint's.
    """
    weights = "weights" if record.checkpoint.startswith(EPOCH_PREFIX) else "checkpoint"
    tiles = f"{record.way}, {record.cores} cores, overlap {record.overlap}, {record.blend}"
    return (
        f"{weights} of epoch {record.epoch}, {tiles}, film {record.trajectory} from {record.start},"
        f" {record.steps} steps"
    )


def _of_physics(record: Physics) -> Answer:
    return Answer(
        attempt=record.attempt,
        at=record.at,
        evaluation="physics",
        key=f"epoch {record.epoch}",
        epoch=record.epoch,
        step=record.step,
        checkpoint=record.checkpoint,
        facts={"showers": record.showers, "grid": list(record.grid), "periodic": record.periodic},
        metric_prefix="physics_",
        scores=[Score(**score.model_dump(), samples=record.showers) for score in record.scores],
        curves=[_physics_curve(curve) for curve in record.curves],
        arrays=[_shower(shower) for shower in record.pictures],
    )


def _physics_curve(curve: PhysicsCurve) -> Curve:
    bins = {
        name: list(limits)
        for name in ("energy", "angle")
        if (limits := getattr(curve, name)) is not None
    }
    real = CurveSeries(name="real", values=curve.real, error=curve.real_error)
    generated = CurveSeries(name="generated", values=curve.generated, error=curve.generated_error)
    return Curve(name=curve.name, x=curve.x, y=curve.y, series=[real, generated], facts=bins)


def _shower(shower: PhysicsShower) -> ArrayFile:
    facts = {name: getattr(shower, name) for name in ("pair", "energy_gev", "angle", "share")}
    return ArrayFile(name=shower.side, places=shower.cells, values=shower.mev, facts=facts)


def _of_flow(record: Flow) -> Answer:
    return Answer(
        attempt=record.attempt,
        at=record.at,
        evaluation="rollout",
        key=rollout_key(record),
        epoch=record.epoch,
        step=record.step,
        checkpoint=record.checkpoint,
        facts=record.model_dump(include=set(_FLOW_FACTS)),
        metric_prefix="flow_" if record.is_usual else "",
        precedence=0 if record.way == "whole" else 1,
        scores=[_flow_score(score) for score in record.scores],
        curves=[*map(_by_step, record.by_step), *_stages(record.stages)],
        arrays=[ArrayFile(name="frames", file=record.frames)] if record.frames else [],
    )


def _flow_score(score: FlowScore) -> Score:
    baselines = {"reference": score.reference, "replay": score.replay}
    finite = {name: value for name, value in baselines.items() if not math.isnan(value)}
    return Score(name=score.name, value=score.value, baselines=finite)


def _by_step(series: FlowSeries) -> Curve:
    lines = {
        "prediction": series.values,
        "persistence": series.persistence,
        "truth": series.truth,
        "replay": series.replay,
    }
    steps = [float(series.first + place) for place in range(len(series.values))]
    return Curve(
        name=series.name,
        x=steps,
        series=[CurveSeries(name=name, values=values) for name, values in lines.items() if values],
    )


def _stages(stages: list[FlowStage]) -> list[Curve]:
    if not stages:
        return []
    lines = {
        name: [float(getattr(stage, name)) for stage in stages]
        for name in ("seconds", "times", "median_s")
    }
    return [
        Curve(
            name="stages",
            x=[float(number) for number in range(len(stages))],
            series=[CurveSeries(name=name, values=values) for name, values in lines.items()],
            facts={"names": [stage.name for stage in stages]},
        )
    ]


def _of_surface(record: Surface) -> Answer:
    epochs = [float(epoch) for epoch in record.path_epoch]
    grid = Curve(
        name="loss",
        x=record.x * len(record.y),
        y=[y for y in record.y for _ in record.x],
        series=[CurveSeries(name="loss", values=record.loss)],
        facts={"columns": len(record.x)},
    )
    path = Curve(
        name="path",
        x=record.path_x,
        y=record.path_y,
        series=[
            CurveSeries(name="loss", values=record.path_loss),
            CurveSeries(name="epoch", values=epochs),
        ],
    )
    return Answer(
        attempt=record.attempt,
        at=record.at,
        evaluation="loss_surface",
        key=record.network,
        epoch=max(record.path_epoch, default=0),
        step=0,
        checkpoint="snapshots",
        facts=record.model_dump(include={"network", "images", "share_x", "share_y"}),
        scores=[],
        curves=[grid, path],
    )
