"""How a row is measured: in turns between sides, or by a child that answers once."""

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
    CPU_ENVIRONMENT,
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
    """For each side, `rounds` turns of `steps` steps, on batches of `batch` images.

    `images`: in the data set; `referee`: the script of a further peer.
    """

    rounds: int
    steps: int
    batch: int
    images: int
    referee: Path | None = None

    def peer_command(self, module: str, precision: str, *further: str) -> list[str]:
        """The arguments of `python` that start a peer, which then serves turns."""
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

    def trainer_command(
        self, module: str, precision: str, *settings: str, data: str = MNIST
    ) -> list[str]:
        """The same for our trainer. `settings`: for example "replicas=8"; `data`: a name in
        run_options.py.
        """
        options = [part for setting in settings for part in ("--set", setting)]
        return self.peer_command(
            module, precision, "--images", str(self.images), "--data", data, *options
        )

    def turns(
        self,
        commands: dict[str, list[str]],
        report_turn: Callable[[int, str, Turn], None],
        *further: Side,
    ) -> dict[str, list[Turn]]:
        """The turns of each side by name, after its warm-up.

        `commands`: arguments of `python` by side; `further`: sides of another kind, whose turns
        follow; `report_turn`: as in `alternate`. Raises NotMeasuredError.
        """
        with child_sides(commands) as sides:
            return alternate(
                [*sides.values(), *further], self.rounds, self.steps, WARM_UP_STEPS, report_turn
            )


def answer_of(arguments: list[str], timeout_s: float | None = None) -> dict[str, Any]:
    """The JSON object that a Python child prints last.

    Prints the child's output and raises NotMeasuredError if it fails or exceeds `timeout_s`.
    """
    command = [sys.executable, *arguments]
    try:
        child = subprocess.run(
            command,
            cwd=REPOSITORY,
            env={**os.environ, **CPU_ENVIRONMENT},
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
        )
    except subprocess.TimeoutExpired:
        raise NotMeasuredError(
            f"`python {' '.join(arguments)}` did not answer within {timeout_s:,.0f} s"
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
