"""Our trainer against a plain Keras loop and a PyTorch loop, in both precisions, all in one
rotation.

Ours is a whole run (trainer_side.py) with journal and probes on; the peers only train. The default
rounds cover an epoch of MNIST with its probe and checkpoint: the median of the turns describes
steady steps, and the ratio of totals includes the end of the epoch.
"""

from __future__ import annotations

import importlib.util
import sys

from benchmarks.effort import Effort
from benchmarks.ratios import speed_ratio_of_totals, speed_ratios, spread
from benchmarks.results import Report
from benchmarks.step_timer import PRECISIONS
from benchmarks.turns import Turn

MODULES = {"keras": "keras_loop", "ours": "trainer_side", "torch": "torch_loop"}
INSTALL_TORCH = (
    "PyTorch is not installed: `.venv/bin/python -m pip install -r requirements-bench.txt` adds it."
)


def measure(report: Report, effort: Effort) -> None:
    """Adds the rates of all sides, and the ratios with targets."""
    peers = [
        program for program in MODULES if program != "torch" or importlib.util.find_spec("torch")
    ]
    commands = {
        _side(program, precision): _command(effort, program, precision)
        for precision in PRECISIONS
        for program in peers
    }
    if "torch" not in peers:
        print(INSTALL_TORCH, file=sys.stderr)
    turns = effort.turns(commands, report.turn)
    report.rates(turns, effort.batch)
    _compare(report, turns)


def _side(program: str, precision: str) -> str:
    return f"{program} {precision}"


def _command(effort: Effort, program: str, precision: str) -> list[str]:
    return (effort.trainer_command if program == "ours" else effort.peer_command)(
        MODULES[program], precision
    )


def _compare(report: Report, turns: dict[str, list[Turn]]) -> None:
    pairs = {
        f"over_{peer}_{precision}": (_side("ours", precision), _side(peer, precision))
        for precision in PRECISIONS
        for peer in ("keras", "torch")
    }
    pairs["best_over_keras_float32"] = (_side("ours", "mixed_bfloat16"), _side("keras", "float32"))
    for name, (ours, peer) in pairs.items():
        if peer in turns:
            totals = speed_ratio_of_totals(turns[ours], turns[peer])
            report.spread(
                "figure", name, spread(speed_ratios(turns[ours], turns[peer])), of_totals=totals
            )
        elif peer.startswith("torch"):
            report.not_measured(name, INSTALL_TORCH)
