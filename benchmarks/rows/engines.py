"""The JAX engine against TensorFlow's on a CPU: the same step on all cores, in turns."""

from __future__ import annotations

from benchmarks.effort import Effort
from benchmarks.ratios import speed_ratio_of_totals, speed_ratios, spread
from benchmarks.results import Report
from benchmarks.step_timer import PRECISIONS

ENGINES = ("tensorflow", "jax")


def measure(report: Report, effort: Effort) -> None:
    """Adds the rates, and the time of a JAX step over that of a TensorFlow step."""
    commands = {
        f"{engine} {precision}": effort.trainer_command(
            "engine_side", precision, f"engine={engine}"
        )
        for precision in PRECISIONS
        for engine in ENGINES
    }
    turns = effort.turns(commands, report.turn)
    report.rates(turns, effort.batch)
    for precision in PRECISIONS:
        tensorflow, jax = (turns[f"{engine} {precision}"] for engine in ENGINES)
        report.spread(
            "figure",
            f"jax_over_tensorflow_{precision}",
            spread(speed_ratios(tensorflow, jax)),
            of_totals=speed_ratio_of_totals(tensorflow, jax),
        )
