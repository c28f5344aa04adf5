"""Comparisons in turns. The speed of a machine drifts, so each turn is compared with its neighbor,
and the result is the median of many ratios.

Each side is a child process that runs through the whole comparison. It times a block of steps on
each request, one line each way: {"steps": 10} → {"steps": 10, "seconds": 3.21}. The parent requests
one side after the other. A waiting side blocks in `readline`: it uses memory but no processor
(measured: 0.3% of a core for a run, 0% for the loops). A side can do more steps than requested, and
reports how many. Start, compilation and the first steps are in the warm-up turn, which does not
count.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from typing import Protocol, TextIO

from benchmarks.trial import end_with_children
from gan_runtime.records.home import REPOSITORY

CPU_ENVIRONMENT = {"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "2"}
ANSWER_SECONDS = 600.0  # the first answer includes loading a framework and compiling
EXIT_SECONDS = 60.0
WARM_UP_STEPS = 10  # the first call of a run has one step, the second can still allocate


class NotMeasuredError(Exception):
    """A comparison was not possible; the message says why and what to do."""


@dataclass(frozen=True)
class Turn:
    """`steps` steps took `seconds` of wall time."""

    steps: int
    seconds: float

    @property
    def step_s(self) -> float:
        """Seconds per step."""
        return self.seconds / self.steps


class Side(Protocol):
    """A side of a comparison."""

    name: str

    def turn(self, steps: int) -> Turn:
        """Measures at least `steps` steps. Raises NotMeasuredError."""
        ...


# ---- the child -----------------------------------------------------------------------------------


def answer_stream() -> TextIO:
    """Standard output, reserved for answers. All other output of this process and its libraries
    goes to standard error.
    """
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return answers


def serve(time_block: Callable[[int], Turn]) -> None:
    """Answers every line of standard input until the parent closes it. `time_block` trains and
    times a number of steps.
    """
    answers = answer_stream()
    for line in sys.stdin:
        print(json.dumps(asdict(time_block(json.loads(line)["steps"]))), file=answers)


# ---- the parent ----------------------------------------------------------------------------------


class ChildSide:
    """A Python child that serves turns. `arguments`: of `python`, such as -m benchmarks.keras_loop
    --serve.
    """

    def __init__(self, name: str, arguments: Sequence[str]) -> None:
        self.name, self._arguments = name, list(arguments)
        self._messages = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 (closed with the child)
        self._process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=REPOSITORY,
            env={**os.environ, **CPU_ENVIRONMENT},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._messages,
            bufsize=0,  # `select` does not see what a buffer has
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._answers = self._process.stdin, self._process.stdout

    def turn(self, steps: int) -> Turn:
        """Requests a turn. Raises NotMeasuredError."""
        try:
            self._requests.write(json.dumps({"steps": steps}).encode() + b"\n")
            while select.select([self._answers], [], [], ANSWER_SECONDS)[0] and (
                line := self._answers.readline()
            ):
                # A library can have printed other lines before the child began to serve.
                if line.startswith(b"{"):
                    return Turn(**json.loads(line))
        except BrokenPipeError:
            pass
        raise NotMeasuredError(self._failure())

    def close(self) -> None:
        """Ends the child, and waits until it and its children have exited."""
        end_with_children(self._process, EXIT_SECONDS)
        self._messages.close()

    def _failure(self) -> str:
        self._messages.seek(0)
        print(self._messages.read(), file=sys.stderr)
        return f"`python {' '.join(self._arguments)}` gave no measurement: its messages are above"


@contextmanager
def child_sides(commands: dict[str, list[str]]) -> Iterator[dict[str, Side]]:
    """Starts a side per name; ends all on exit."""
    with ExitStack() as stack:
        sides: dict[str, Side] = {}
        for name, arguments in commands.items():
            side = ChildSide(name, arguments)
            stack.callback(side.close)
            sides[name] = side
        yield sides


def alternate(
    sides: Sequence[Side],
    rounds: int,
    steps: int,
    warm_up_steps: int,
    report_turn: Callable[[int, str, Turn], None],
) -> dict[str, list[Turn]]:
    """Requests a turn of each side per round, always in the same order. Returns the turns by name.

    Calls `report_turn` with round (from 1), name and turn after each turn.
    """
    for side in sides:
        side.turn(warm_up_steps)
    turns: dict[str, list[Turn]] = {side.name: [] for side in sides}
    for number in range(1, rounds + 1):
        for side in sides:
            turn = side.turn(steps)
            turns[side.name].append(turn)
            report_turn(number, side.name, turn)
    return turns
