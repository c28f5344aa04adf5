"""CERN's 3DGAN, cut down to 17 × 17 × 25 cells and 4 channels: our trainer against plain Keras, and
8 simulated replicas against one.

All sides are in one rotation. As in the row `training`, ours is a whole run; it streams its showers
from memory-mapped files. The peer (benchmarks/keras_showers.py) only trains. With
the default rounds no epoch ends within the turns. Then the memory of one whole run of the authors'
networks, each step on 8 showers one after another, with its probe, samples and checkpoint.
"""

from __future__ import annotations

from benchmarks.effort import Effort, answer_of
from benchmarks.results import Report
from benchmarks.rows import conditional, replicas
from benchmarks.run_options import SHOWERS, SHOWERS_FULL
from benchmarks.step_timer import PRECISIONS

REPLICAS, PRECISION = 8, "mixed_bfloat16"
FULL_BATCH, FULL_STEPS = 8, 4
FIGURE, LONGEST_S = "full_peak_mb", 900.0


def commands(effort: Effort) -> dict[str, list[str]]:
    """What follows `python` to start each side. A host call of ours is as long as a turn."""
    calls, sides = f"steps_per_loop={effort.steps}", {}
    for precision in PRECISIONS:
        sides[f"keras {precision}"] = effort.peer_command("keras_showers", precision)
        sides[f"ours {precision}"] = effort.trainer_command(
            "trainer_side", precision, calls, data=SHOWERS
        )
    replicated = effort.trainer_command(
        "trainer_side", PRECISION, calls, f"replicas={REPLICAS}", data=SHOWERS
    )
    return {**sides, f"replicas {REPLICAS}": replicated}


def measure(report: Report, effort: Effort) -> None:
    """Rates of all sides, and the figures that have targets."""
    turns = effort.turns(commands(effort), report.turn)
    report.rates(turns, effort.batch)
    conditional.compare(report, turns)
    replicas.compare(report, turns[f"ours {PRECISION}"], turns[f"replicas {REPLICAS}"])
    report.add("figure", name=FIGURE, value=answer_of(full_run(), LONGEST_S)["peak_mb"], count=1)


def full_run(*settings: str) -> list[str]:
    """What follows `python` for a whole run of one epoch of the authors' networks."""
    options = [f"accumulation_steps={FULL_BATCH}", *settings]
    return [
        *("-m", "benchmarks.ours", "--precision", PRECISION, "--data", SHOWERS_FULL),
        *("--batch", str(FULL_BATCH), "--steps", "1", "--steps-per-epoch", str(FULL_STEPS)),
        *(part for setting in options for part in ("--set", setting)),
    ]
