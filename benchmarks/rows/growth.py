"""The cost of growth: seconds per step against the global batch and the number of simulated
replicas, on the same cores.

Each cell is a separate process with the bare engine, bfloat16, timed step by step; the order of
the cells is shuffled, so that a drift of the machine does not look like growth.
"""

from __future__ import annotations

import itertools
import random

from benchmarks.effort import Effort, answer_of
from benchmarks.results import Report

BATCHES = (64, 128, 256, 512, 1024)
REPLICAS = (1, 2, 4, 8)


def measure(report: Report, effort: Effort) -> None:
    """The median of `effort.steps` steps in each cell."""
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
