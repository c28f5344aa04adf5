"""The cost of streaming rows from memory-mapped files, and the time that a step waits for them.

Two whole runs of a conditional `dcgan` on 64 × 64 RGB images take turns: one streams, the other has
its rows in memory. The waiting comes from a profile of the bare engine. The files are evicted from
the page cache first, so rows come from the disk until the cache has them again. With the default
rounds no epoch ends within the turns, since its end would cost both sides the same.
"""

from __future__ import annotations

from benchmarks.effort import Effort
from benchmarks.ratios import speed_ratio_of_totals, speed_ratios, spread
from benchmarks.results import Report
from benchmarks.rows.input import add_share
from benchmarks.run_options import PICTURES, STREAMED
from benchmarks.turns import Turn

PRECISION = "mixed_bfloat16"  # faster steps, so waiting would be a larger share
FIGURE = "streaming_overhead"


def commands(effort: Effort) -> dict[str, list[str]]:
    """The arguments of `python` for each side."""
    return {
        "resident": effort.trainer_command("trainer_side", PRECISION, data=PICTURES),
        "streamed": effort.trainer_command("trainer_side", PRECISION, data=STREAMED),
    }


def measure(report: Report, effort: Effort) -> None:
    """Adds the cost of streaming as a share of a step, and the share of input in a profile."""
    turns = effort.turns(commands(effort), report.turn)
    report.rates(turns, effort.batch)
    compare(report, turns["resident"], turns["streamed"])
    add_share(report, effort, STREAMED)


def compare(report: Report, resident: list[Turn], streamed: list[Turn]) -> None:
    """Adds the figure with a target: 0.02 if a streamed step takes 2% longer."""
    shares = [ratio - 1.0 for ratio in speed_ratios(resident, streamed)]
    of_totals = speed_ratio_of_totals(resident, streamed) - 1.0
    report.spread("figure", FIGURE, spread(shares), of_totals=of_totals)
