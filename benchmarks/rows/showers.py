"""CERN's 3DGAN, reduced to 17 × 17 × 25 cells and 4 channels: our trainer against plain Keras, and
8 simulated replicas against one.

All sides are in one rotation. As in the row `training`, ours is a whole run; it streams showers
from memory-mapped files. The peer (benchmarks/keras_showers.py) only trains. With the default
rounds no epoch ends within the turns. The row also has the peak memory of a whole run of the
authors' networks, whose steps accumulate gradients over 8 showers, one after another.
"""

from __future__ import annotations

from benchmarks.effort import Effort, answer_of
from benchmarks.results import Report
from benchmarks.rows import conditional, replicas
from benchmarks.run_options import SHOWERS, SHOWERS_FULL
from benchmarks.step_timer import PRECISIONS

REPLICAS, PRECISION = 8, "mixed_bfloat16"
FULL_BATCH, FULL_STEPS = 8, 4
FIGURE, TIMEOUT_S = "full_peak_mb", 900.0


def commands(effort: Effort) -> dict[str, list[str]]:
    """The arguments of `python` for each side. Our host calls are as long as a turn."""
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
    """Adds the rates of all sides, and the figures with targets."""
    turns = effort.turns(commands(effort), report.turn)
    report.rates(turns, effort.batch)
    conditional.compare(report, turns)
    replicas.compare(report, turns[f"ours {PRECISION}"], turns[f"replicas {REPLICAS}"])
    report.add("figure", name=FIGURE, value=answer_of(full_run(), TIMEOUT_S)["peak_mb"], count=1)


def full_run(*settings: str) -> list[str]:
    """The arguments of `python` for a run of the authors' networks over one epoch."""
    options = [f"accumulation_steps={FULL_BATCH}", *settings]
    return [
        *("-m", "benchmarks.whole_run", "--precision", PRECISION, "--data", SHOWERS_FULL),
        *("--batch", str(FULL_BATCH), "--steps", "1", "--steps-per-epoch", str(FULL_STEPS)),
        *(part for setting in options for part in ("--set", setting)),
    ]
