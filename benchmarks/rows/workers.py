"""Two worker processes on the cores of one: whole runs, one after the other, each timed from its
journal (ours.py).

Workers wait for each other in every step, so none of them could be held at a gate: each turn is a
separate run, and the turn's seconds are those of its median step. Starting and ending are not
timed.
"""

from __future__ import annotations

from benchmarks.effort import Effort, answer_of
from benchmarks.ratios import speed_ratios, spread
from benchmarks.results import Report
from benchmarks.turns import Turn

FIGURE = "workers_2_over_1"


def measure(report: Report, effort: Effort) -> None:
    """How many times as fast 2 workers are as one, on the same global batch."""
    turns: dict[int, list[Turn]] = {1: [], 2: []}
    for number in range(1, effort.rounds + 1):
        for workers, worker_turns in turns.items():
            options = [
                "--batch",
                str(effort.batch),
                "--steps",
                str(effort.steps),
                "--set",
                f"workers={workers}",
            ]
            step_s = answer_of(["-m", "benchmarks.ours", *options])["step_s"]
            worker_turns.append(Turn(effort.steps, effort.steps * step_s))
            report.turn(number, f"workers {workers}", worker_turns[-1])
    report.rates(
        {f"workers {workers}": worker_turns for workers, worker_turns in turns.items()},
        effort.batch,
    )
    report.spread("figure", FIGURE, spread(speed_ratios(turns[2], turns[1])))
