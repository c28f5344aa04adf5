"""What jobs about showers are asked for. Loads no framework, so that pages can ask."""

from __future__ import annotations

from dataclasses import dataclass

from gan_runtime.domains.showers.evaluation import SUBMISSION_FILE, Measured
from gan_runtime.training.checkpoints import Which

__all__ = ["CHOSEN_FILE", "SUBMISSION_FILE", "Chosen", "Measured", "Wanted"]

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
