"""How long a row is measured: in turns between its sides, or by children that answer once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.run_options import MNIST
from benchmarks.turns import (
    QUIET_CPU,
    WARM_UP_STEPS,
    NotMeasuredError,
    Side,
    Turn,
    alternate,
    child_sides,
)
from gan_runtime.records.home import REPOSITORY


@dataclass(frozen=True)
class Effort:
    """`rounds` turns of each side, `steps` steps each, on `batch` images of a set of `images`.

    `referee`: a further peer.
    """

    rounds: int
    steps: int
    batch: int
    images: int
    referee: Path | None = None

    def loop(self, module: str, precision: str, *further: str) -> list[str]:
        """The arguments of `python` that start a peer that serves turns."""
        return [
            "-m",
            f"benchmarks.{module}",
            "--serve",
            "--precision",
            precision,
            "--batch",
            str(self.batch),
            *further,
        ]

    def run(self, module: str, precision: str, *settings: str, data: str = MNIST) -> list[str]:
        """The same for our trainer. `settings`: such as replicas=8; `data`: a name in
        run_options.py.
        """
        options = [part for setting in settings for part in ("--set", setting)]
        return self.loop(module, precision, "--images", str(self.images), "--data", data, *options)

    def turns(
        self,
        commands: dict[str, list[str]],
        report_turn: Callable[[int, str, Turn], None],
        *further: Side,
    ) -> dict[str, list[Turn]]:
        """The turns of each side by name, after its warm-up.

        `commands`: what follows `python` to start a side; `further`: sides of another kind,
        measured after those; `report_turn`: as in `alternate`. Raises NotMeasuredError.
        """
        with child_sides(commands) as sides:
            return alternate(
                [*sides.values(), *further], self.rounds, self.steps, WARM_UP_STEPS, report_turn
            )


def answer_of(arguments: list[str], longest_s: float | None = None) -> dict[str, Any]:
    """The JSON object that a Python child prints last; it is ended after `longest_s` seconds.

    Raises NotMeasuredError, its messages printed, when it fails or has not answered by then.
    """
    command = [sys.executable, *arguments]
    try:
        child = subprocess.run(
            command,
            cwd=REPOSITORY,
            env={**os.environ, **QUIET_CPU},
            capture_output=True,
            text=True,
            check=False,
            timeout=longest_s,
        )
    except subprocess.TimeoutExpired:
        raise NotMeasuredError(
            f"`python {' '.join(arguments)}` had not answered after {longest_s:,.0f} s"
        ) from None
    try:
        if child.returncode == 0:
            return dict(json.loads(child.stdout.splitlines()[-1]))
    except (IndexError, ValueError):
        print(child.stdout, file=sys.stderr)
    print(child.stderr, file=sys.stderr)
    raise NotMeasuredError(
        f"`python {' '.join(arguments)}` gave no measurement (exit code {child.returncode}): its"
        " messages are above"
    )
