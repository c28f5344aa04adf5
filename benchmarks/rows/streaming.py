"""What it costs to stream rows from memory-mapped files, and how long a streamed step waits for
them.

A conditional `dcgan` of 64 × 64 RGB images that streams trains against one whose rows are in
memory, both whole runs, turn by turn; the waiting is read from a profile of the bare engine. The
files were dropped from the system's cache before, so that rows come from the disk until it holds
them again. With the default rounds no epoch ends within the turns: its end would cost both sides
the same.
"""

from __future__ import annotations

from benchmarks.effort import Effort
from benchmarks.ratios import speed_ratio_of_totals, speed_ratios, spread
from benchmarks.results import Report
from benchmarks.rows.input import add_share
from benchmarks.run_options import PICTURES, STREAMED
from benchmarks.turns import Turn

PRECISION = "mixed_bfloat16"  # the faster steps: waiting would be the larger share of them
FIGURE = "streaming_overhead"


def commands(effort: Effort) -> dict[str, list[str]]:
    """What follows `python` to start each side."""
    return {
        "resident": effort.trainer_command("trainer_side", PRECISION, data=PICTURES),
        "streamed": effort.trainer_command("trainer_side", PRECISION, data=STREAMED),
    }


def measure(report: Report, effort: Effort) -> None:
    """The share of a step that streaming costs, and the share of input in a profile of
    streamed steps.
    """
    turns = effort.turns(commands(effort), report.turn)
    report.rates(turns, effort.batch)
    compare(report, turns["resident"], turns["streamed"])
    add_share(report, effort, STREAMED)


def compare(report: Report, resident: list[Turn], streamed: list[Turn]) -> None:
    """The figure that has a target: 0.02 means that a streamed step takes 2% longer."""
    shares = [ratio - 1.0 for ratio in speed_ratios(resident, streamed)]
    of_totals = speed_ratio_of_totals(resident, streamed) - 1.0
    report.spread("figure", FIGURE, spread(shares), of_totals=of_totals)
