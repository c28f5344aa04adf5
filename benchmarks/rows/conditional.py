"""A conditional DCGAN of 64 × 64 RGB images: our trainer against the same networks in plain Keras.

Both precisions are in one rotation. As in the row `training`, ours is a whole run and the peer only
trains; the default rounds cover an epoch with its probe and checkpoint.
"""

from __future__ import annotations

from benchmarks.effort import Effort
from benchmarks.ratios import speed_ratio_of_totals, speed_ratios, spread
from benchmarks.results import Report
from benchmarks.run_options import PICTURES
from benchmarks.step_timer import PRECISIONS
from benchmarks.turns import Turn


def commands(effort: Effort) -> dict[str, list[str]]:
    """The arguments of `python` for each side."""
    sides = {}
    for precision in PRECISIONS:
        sides[f"keras {precision}"] = effort.peer_command("keras_conditional", precision)
        sides[f"ours {precision}"] = effort.trainer_command(
            "trainer_side", precision, data=PICTURES
        )
    return sides


def measure(report: Report, effort: Effort) -> None:
    """Adds the rates of all sides, and our speed relative to the peer in each precision."""
    turns = effort.turns(commands(effort), report.turn)
    report.rates(turns, effort.batch)
    compare(report, turns)


def compare(report: Report, turns: dict[str, list[Turn]], suffix: str = "") -> None:
    """Adds the figures with targets; `suffix`: of their names."""
    for precision in PRECISIONS:
        ours, keras = turns[f"ours {precision}"], turns[f"keras {precision}"]
        ratios, of_totals = speed_ratios(ours, keras), speed_ratio_of_totals(ours, keras)
        report.spread(
            "figure", f"over_keras_{precision}{suffix}", spread(ratios), of_totals=of_totals
        )
