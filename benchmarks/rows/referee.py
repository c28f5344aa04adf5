"""Our trainer against a script outside this project: --referee SCRIPT.

Each turn starts SCRIPT --engine tf|torch --precision float32|bf16 --batch N --steps N. The script
prints a JSON line with the `images_per_s` of its median step. A slow step of a referee is therefore
invisible, and there is no ratio of totals.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.effort import Effort
from benchmarks.ratios import speed_ratios, spread
from benchmarks.results import Report
from benchmarks.step_timer import PRECISIONS
from benchmarks.turns import CPU_ENVIRONMENT, NotMeasuredError, Turn

PRECISION_NAMES = {"mixed_bfloat16": "bf16"}  # where a referee has another name


def measure(report: Report, effort: Effort) -> None:
    """Adds our speed over the referee's, turn by turn, in both precisions and with each installed
    framework.
    """
    if effort.referee is None:
        raise NotMeasuredError("there is no referee: name one with --referee SCRIPT")
    report.add("facts", sha256=hashlib.sha256(effort.referee.read_bytes()).hexdigest())
    engines = ["tf", *(["torch"] if importlib.util.find_spec("torch") else [])]
    referees = [
        RefereeSide(effort.referee, engine, precision, effort.batch)
        for precision in PRECISIONS
        for engine in engines
    ]
    commands = {
        f"ours {precision}": effort.trainer_command("trainer_side", precision)
        for precision in PRECISIONS
    }
    turns = effort.turns(commands, report.turn, *referees)
    report.rates(turns, effort.batch)
    for referee in referees:
        ratios = speed_ratios(turns[f"ours {referee.precision}"], turns[referee.name])
        report.spread("figure", f"over {referee.name}", spread(ratios))


class RefereeSide:
    """A `turns.Side` that calls the script with one engine and precision."""

    def __init__(self, script: Path, engine: str, precision: str, batch: int) -> None:
        self.name, self.precision, self._batch = f"referee {engine} {precision}", precision, batch
        precision_name = PRECISION_NAMES.get(precision, precision)
        self._command = [
            sys.executable,
            str(script),
            "--engine",
            engine,
            "--precision",
            precision_name,
            "--batch",
            str(batch),
        ]

    def turn(self, steps: int) -> Turn:
        """Runs the script; the seconds are `steps` times its median step."""
        command = [*self._command, "--steps", str(steps)]
        child = subprocess.run(
            command,
            env={**os.environ, **CPU_ENVIRONMENT},
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        try:
            rate = float(json.loads(child.stdout.splitlines()[-1])["images_per_s"])
        except (IndexError, ValueError, KeyError):
            raise NotMeasuredError(
                f"the referee failed (exit code {child.returncode}): its messages are above"
            ) from None
        return Turn(steps, steps * self._batch / rate)
