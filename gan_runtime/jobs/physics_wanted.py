"""What a measurement of showers is asked for. Loads nothing, so that pages can ask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Measured = Literal["newest", "best", "every"]
SUBMISSION_FILE = "submission.hdf5"  # among the results of a job that was asked for it


@dataclass(frozen=True)
class Wanted:
    """The options of the job. `checkpoint`: which of the run's; "every": the weights after each epoch, where the run has kept them.
    `showers`: how many are compared. `submission`: the generated ones of the last checkpoint also become a file of the CaloChallenge."""

    run_id: str
    checkpoint: Measured = "best"
    showers: int = 1_000
    seed: int = 0
    submission: bool = False
