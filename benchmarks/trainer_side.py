"""Our trainer as users run it, as a side: an endless run that trains only in its turns.

There are two processes, as always. This one acts as the dashboard of the run, with database, ingest
and supervisor in an empty home. The other is the trainer, `gan_runtime.worker.main`, with loop,
recorder, journal and fsync, input pipeline, probes, sample grids and checkpoints. The trainer
differs in two points:

* Between two host calls the loop checks whether the file STOP exists. Here that check waits for
  the next turn, so a turn begins and ends between two host calls. The recorder writes the last
  call in the next turn, while the device computes, as in every run.
* The engine counts its steps (counted_engine.py).

The time of a turn is wall time: training calls, the time between them, and ends of epochs. A turn
ends with the first host call that reaches the requested steps. Loading, building, tracing and the
warm-up turn are not timed.

python -m benchmarks.trainer_side --serve [--data mnist|pictures|streamed] [--precision P]
    [--batch N] [--images N] [--set OPTION=VALUE …]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TextIO

from benchmarks.run_options import (
    add_data_argument,
    random_rows,
    reading,
    spec_of,
    trainer_arguments,
)
from benchmarks.trial import trial_home
from benchmarks.turns import Turn, answer_stream
from gan_runtime import catalog, worker
from gan_runtime.commands.runtime import Runtime
from gan_runtime.hardware import hosts
from gan_runtime.records import journal
from gan_runtime.records.home import REPOSITORY, Home
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.record import operator
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import RunSpec
from tests.support.asking import ask

ACCELERATOR = "cpu"
ENDLESS_EPOCHS = 10_000


class Gate:
    """Holds the trainer between turns. `steps_run`: steps of the trainer so far."""

    def __init__(self, requests: TextIO, answers: TextIO, steps_run: Callable[[], int]) -> None:
        self._requests, self._answers, self._steps_run = requests, answers, steps_run
        self._turn_steps: int | None = None  # None between turns
        self._begin = (0, 0.0)

    def pass_between_calls(self) -> bool:
        """Returns True at once within a turn. At its end, answers and waits for the next turn.

        False: there are no more turns.
        """
        if self._turn_steps is not None:
            turn = Turn(self._steps_run() - self._begin[0], time.perf_counter() - self._begin[1])
            if turn.steps < self._turn_steps:
                return True
            print(json.dumps(asdict(turn)), file=self._answers)
        line = self._requests.readline()
        self._turn_steps = json.loads(line)["steps"] if line else None
        self._begin = (self._steps_run(), time.perf_counter())
        return self._turn_steps is not None


@dataclass(frozen=True)
class GatedRunDir(RunDir):
    """The run's folder for the trainer, where the check for STOP waits at the gate."""

    gate: Gate

    @property
    def stop_file(self) -> Path:
        """The file STOP, created when there are no more turns."""
        path = super().stop_file
        # Only the loop waits at the gate: while the step compiles, a thread of the trainer checks
        # for STOP as well and would consume the loop's turn.
        in_loop = threading.current_thread() is threading.main_thread()
        if in_loop and not self.gate.pass_between_calls():
            path.touch()
        return path


def train(run_path: Path, data: str) -> int:
    """Runs the trainer process; returns its exit code."""
    answers = answer_stream()
    engine = catalog.ENGINES["tensorflow"]
    catalog.ENGINES["tensorflow"] = replace(engine, module="benchmarks.counted_engine")

    def steps_run() -> int:
        # The worker has loaded TensorFlow by now.
        from benchmarks.counted_engine import CountedEngine

        return CountedEngine.steps_run

    with reading(data):
        return worker.main(
            GatedRunDir(run_path, Gate(sys.stdin, answers, steps_run)), 1, ACCELERATOR
        )


def run_dashboard(home: Home, spec: RunSpec, data: str) -> int:
    """Submits the run, starts its trainer in place of the supervisor, and owns the home until the
    trainer exits. Returns the trainer's exit code.
    """
    run = ask(home, hosts.probe(), actor=operator("a benchmark")).submit(spec)
    journal.append(
        run.supervisor_journal,
        1,
        StatusChange(status="starting", reason="started by the benchmark"),
    )
    command = [
        sys.executable,
        "-m",
        "benchmarks.trainer_side",
        "--trainer",
        str(run.path),
        "--data",
        data,
    ]
    with subprocess.Popen(command, cwd=REPOSITORY) as trainer:
        runtime = Runtime.open(home)
        try:
            return trainer.wait()
        finally:
            runtime.close()


def main() -> int:
    """Runs one of the two processes."""
    parser = trainer_arguments("Serves turns of a whole run of our trainer.")
    add_data_argument(parser)
    parser.add_argument("--trainer", type=Path, metavar="RUN_DIR", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.trainer:
        return train(options.trainer, options.data)
    with trial_home() as home, random_rows(home, options.images, options.data):
        return run_dashboard(home, spec_of(options, ENDLESS_EPOCHS, options.data), options.data)


if __name__ == "__main__":
    sys.exit(main())
