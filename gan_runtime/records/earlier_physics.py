"""What a job measures on the showers that a run's networks generate, beside real ones (domains/showers/scores.py)."""

from __future__ import annotations

import math
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from gan_runtime.records.columns import Count, Name, Step
from gan_runtime.records.record import Record, agree

MOST_CELLS = 10_000_000  # of a grid, so that no page makes room for more than it has
Side = Literal["real", "generated"]
Axis = Annotated[int, Field(ge=1, le=10_000)]
Bounds = tuple[float, float]


class PhysicsScore(BaseModel):
    """A score of generated beside real showers, and under `floor` the same of other real ones; errors are one standard deviation. NaN:
    there is none."""

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")
    name: Name
    value: float
    error: float = math.nan
    floor: float = math.nan
    floor_error: float = math.nan


class PhysicsCurve(BaseModel):
    """Means or shares over `x` of real and generated showers, with standard deviations. `energy`: from and to, GeV; `angle`: rad; None
    for all showers. `y`: of a map the second place of each number; else empty, as in records from before there were maps."""

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
        agree(self.x, self.y or self.x, self.real, self.real_error, self.generated, self.generated_error)
        return self


class PhysicsShower(BaseModel):
    """One shower: its brightest cells, by their place in the flat grid, in MeV. `pair`: the real and the generated one of a pair were
    asked for with the same energy and angle. `share`: how much of the shower's energy these cells hold."""

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
    """One checkpoint of a run, measured. `grid`: cells along x, y and z; `periodic`: axes that close on themselves; `checkpoint`: which
    it was, such as "best"; `showers`: how many were compared."""

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
