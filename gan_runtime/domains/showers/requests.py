"""What jobs about showers are asked for. Loads no framework, so that pages can ask."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

from pydantic import BaseModel, ConfigDict, model_validator

from gan_runtime.domains.showers.evaluation import SUBMISSION_FILE, Measured
from gan_runtime.records.answer import ArrayFile, Curve
from gan_runtime.training.checkpoints import Which

__all__ = ["CHOSEN_FILE", "SUBMISSION_FILE", "Chosen", "ChosenShowers", "Measured", "Wanted"]

MOST_CELLS = 10_000_000  # of a grid, so that no page makes room for more than it has
CHOSEN_FILE = "showers.json"  # among the results of a job that makes showers of one energy


@dataclass(frozen=True)
class Wanted:
    """The options of the job. `checkpoint`: which of the run's; "every": the weights after each epoch, where the run has kept them.
    `showers`: how many are compared. `submission`: the generated ones of the last checkpoint also become a file of the CaloChallenge."""

    run_id: str
    checkpoint: Measured = "best"
    showers: int = 1_000
    seed: int = 0
    submission: bool = False


@dataclass(frozen=True)
class Chosen:
    """The options of the job that makes showers of one energy and angle. `angle_deg`: as it is measured on showers, the label that
    networks know, 90 is straight in; None where the data set knows no angle. `showers`: how many on each side."""

    run_id: str
    energy_gev: float
    angle_deg: float | None = 90.0
    checkpoint: Which = "newest"
    showers: int = 100
    seed: int = 0


class ChosenShowers(BaseModel):
    """What a job made of one energy (GeV) and angle (measured, rad; None without angles).

    `simulated`: the showers next to the generated ones are made for it, else they are the held-out ones that come nearest.
    `step`: of the checkpoint; `response`: visible over incident energy by side, and `measured`: their angles, rad.
    `curves`, `pictures`: as in an answer.
    """

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")
    energy_gev: float
    angle: float | None
    simulated: bool
    step: int
    showers: int
    grid: tuple[int, int, int]
    response: dict[str, float]
    measured: dict[str, float] | None
    curves: list[Curve]
    pictures: list[ArrayFile]

    @model_validator(mode="after")
    def _cells_of_the_grid(self) -> Self:
        if math.prod(self.grid) > MOST_CELLS or any(
            cell >= math.prod(self.grid) for picture in self.pictures for cell in picture.places
        ):
            raise ValueError(f"pictures must lie in a grid of at most {MOST_CELLS:,} cells")
        return self
