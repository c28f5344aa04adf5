"""Eight simulated replicas against one: two whole runs on the same global batch, in turns."""

from __future__ import annotations

from benchmarks.effort import Effort
from benchmarks.ratios import speed_ratio_of_totals, speed_ratios, spread
from benchmarks.results import Report
from benchmarks.turns import Turn

PRECISION = "mixed_bfloat16"


def measure(report: Report, effort: Effort) -> None:
    """Adds the speed of 8 replicas relative to one."""
    commands = {
        f"replicas {count}": effort.trainer_command("trainer_side", PRECISION, f"replicas={count}")
        for count in (1, 8)
    }
    turns = effort.turns(commands, report.turn)
    report.rates(turns, effort.batch)
    compare(report, turns["replicas 1"], turns["replicas 8"])


def compare(report: Report, single: list[Turn], eight: list[Turn]) -> None:
    """Adds the figure with a target."""
    totals = speed_ratio_of_totals(eight, single)
    report.spread(
        "figure", "replicas_8_over_1", spread(speed_ratios(eight, single)), of_totals=totals
    )
