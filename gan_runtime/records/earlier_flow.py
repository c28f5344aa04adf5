"""What a job measures when a run's model is iterated: its picture is its own next source, beside the true pictures.

One record for each way in which the pictures were made (engines/tiling/stopwatch.py); the ways of one job have its id in common, `iteration`.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from gan_runtime.records.answer import MOST_STEPS
from gan_runtime.records.columns import Count, Name, Rank, Step
from gan_runtime.records.record import Record, agree

Way = Literal["naive", "map_reduce", "whole"]
Blend = Literal["none", "hann"]
Pixels = Annotated[int, Field(ge=1, le=100_000)]
Title = Annotated[str, Field(max_length=120)]
FramesFile = Annotated[str, Field(pattern=r"^(flow/[a-z0-9_-]{1,120}\.npz)?$")]


class FlowScore(BaseModel):
    """A single number of all steps together. `reference`: what domains/flows/score_metrics.py says; `replay`: the same of the replay of the nearest
    training film; NaN: there is none."""

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")
    name: Name
    value: float
    reference: float = math.nan
    replay: float = math.nan


class FlowSeries(BaseModel):
    """A number a step, from step `first` on: of the prediction, of the copied start frame (persistence), of the true frames, and of the replay
    of the nearest training film, NaN from its end on. Empty: there is no such number."""

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

    `checkpoint`: which it was, such as "best", or "epoch 3" where it was weights that the run has kept. `cores`: that shared the tiles. `tile`, `overlap`: pixels; `tiles`: how many cover
    the picture; of the way "whole" one, as large as the padded picture. `grid`: height, width, channels. `reynolds`: of the held-out
    trajectory, None for pictures; `trajectory`: which of those held out, from 0; `start`: the frame in it that was given.
    `is_usual`: whether the question is the usual one, which can be compared with that of other runs: the first trajectory from its first frame
    on, as many steps as are taken where nobody says how many. `solver_steps`: between two frames, None for pictures. `film`: the trajectory in
    words, such as "Re 140, width 14", and `obstacle_width` of it, in cells; "" and None in records of version 0.2.0. `replay`: the nearest training film, and
    from which frame on; "" without. `frames`: the file of truth and prediction in the run's folder, "" without.
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
