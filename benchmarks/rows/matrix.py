"""The share of the machine's arithmetic rate that a step reaches: its operations per second over
those of a large matrix product and a large convolution.

All three take turns, in bfloat16 and with TensorFlow. flops.py computes the operations of a step;
the machine's rate is the higher of the two.
"""

from __future__ import annotations

from benchmarks.effort import Effort, answer_of
from benchmarks.matrix_side import FLOP
from benchmarks.ratios import spread, total
from benchmarks.results import Report
from benchmarks.turns import Turn

PRECISION = "mixed_bfloat16"
WORKLOAD = "dcgan_mnist"
# Figure → its reference: one operation, or in each turn the faster of both.
YARDSTICKS = {
    "share_of_matmul": ("matmul",),
    "share_of_convolution": ("convolution",),
    "share_of_matrix_rate": ("matmul", "convolution"),
}


def measure(report: Report, effort: Effort) -> None:
    """Adds the rates, and the step's share of each reference, turn by turn."""
    flop_per_image = answer_of(["-m", "benchmarks.flops", WORKLOAD])["flop_per_image"]
    report.add("facts", workload=WORKLOAD, flop_per_image=flop_per_image)
    commands = {"step": effort.trainer_command("trainer_side", PRECISION)}
    commands |= {name: ["-m", "benchmarks.matrix_side", name] for name in FLOP}
    turns = effort.turns(commands, report.turn)
    flop = {**FLOP, "step": flop_per_image * effort.batch}
    rates = {name: gflops(side_turns, flop[name]) for name, side_turns in turns.items()}
    totals = {
        name: gflops([total(side_turns)], flop[name])[0] for name, side_turns in turns.items()
    }
    for name, values in rates.items():
        report.spread("rate", name, spread(values), unit="GFLOP/s")
    for figure, yardsticks in YARDSTICKS.items():
        shares = [
            step / max(references)
            for step, *references in zip(
                rates["step"], *(rates[name] for name in yardsticks), strict=True
            )
        ]
        of_totals = totals["step"] / max(totals[name] for name in yardsticks)
        report.spread("figure", figure, spread(shares), of_totals=of_totals)


def gflops(turns: list[Turn], flop_per_step: int) -> list[float]:
    """10⁹ operations per second in each turn."""
    return [flop_per_step / turn.step_s / 1e9 for turn in turns]
