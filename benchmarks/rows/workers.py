"""Two worker processes against one on the same cores: whole runs, one after the other, each timed
from its journal (whole_run.py).

Workers wait for each other in every step, so none can pause at a gate. Each turn is a separate run,
and its time is that of the median step, without the start and the end of the run.
"""

from __future__ import annotations

from benchmarks.effort import Effort, answer_of
from benchmarks.ratios import speed_ratios, spread
from benchmarks.results import Report
from benchmarks.turns import Turn

FIGURE = "workers_2_over_1"


def measure(report: Report, effort: Effort) -> None:
    """Adds the speed of 2 workers relative to one, on the same global batch."""
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
            step_s = answer_of(["-m", "benchmarks.whole_run", *options])["step_s"]
            worker_turns.append(Turn(effort.steps, effort.steps * step_s))
            report.turn(number, f"workers {workers}", worker_turns[-1])
    report.rates(
        {f"workers {workers}": worker_turns for workers, worker_turns in turns.items()},
        effort.batch,
    )
    report.spread("figure", FIGURE, spread(speed_ratios(turns[2], turns[1])))
