"""Scaling: seconds per step by global batch and number of simulated replicas, on the same cores.

Each cell is a process with the bare engine in bfloat16. The order of cells is shuffled, so that
drift of the machine does not look like scaling.
"""

from __future__ import annotations

import itertools
import random

from benchmarks.effort import Effort, answer_of
from benchmarks.results import Report

BATCHES = (64, 128, 256, 512, 1024)
REPLICAS = (1, 2, 4, 8)


def measure(report: Report, effort: Effort) -> None:
    """Adds the median of `effort.steps` steps for each cell."""
    cells = list(itertools.product(BATCHES, REPLICAS))
    random.Random(1).shuffle(cells)
    for batch, replicas in cells:
        options = [
            "--batch",
            str(batch),
            "--steps",
            str(effort.steps),
            "--set",
            f"replicas={replicas}",
        ]
        answer = answer_of(["-m", "benchmarks.engine_side", *options])
        report.add(
            "cell", batch=batch, replicas=replicas, step_s=answer["step_s"], steps=effort.steps
        )
