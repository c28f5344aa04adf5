"""Comparing in turns: the speed of a machine drifts, so neighbors in time are compared, and the
median of many ratios counts.

Each side is a child process that lives through the whole comparison and measures a block of steps
on each request, one line each way: {"steps": 10} → {"steps": 10, "seconds": 3.21}. The parent
requests one side after the other. A waiting side blocks in `readline`: it holds memory but no
processor (measured: 0.3% of a core for a run, 0% for the loops). A side may do more steps than
requested, and reports how many. Starting, compiling and the first steps are in the warm-up turn,
whose answer is thrown away.
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

QUIET_CPU = {"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "2"}
ANSWER_SECONDS = 600.0  # the first answer of a side includes loading its framework and compiling
ENDING_SECONDS = 60.0
WARM_UP_STEPS = 10  # the first call of a run is one step long, the second may still allocate


class NotMeasuredError(Exception):
    """A comparison could not be made; the message says why and what to do."""


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


# ---- the child's end -----------------------------------------------------------------------------


def answer_stream() -> TextIO:
    """Standard output for the answers alone: all other output of this process and its libraries
    goes to standard error.
    """
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return answers


def serve(block: Callable[[int], Turn]) -> None:
    """Answers every line of standard input until the parent closes it.

    `block` trains and times so many steps.
    """
    answers = answer_stream()
    for line in sys.stdin:
        print(json.dumps(asdict(block(json.loads(line)["steps"]))), file=answers)


# ---- the parent's end ----------------------------------------------------------------------------


class ChildSide:
    """A Python child that serves turns.

    `arguments`: what follows `python`, such as -m benchmarks.keras_loop --serve.
    """

    def __init__(self, name: str, arguments: Sequence[str]) -> None:
        self.name, self._arguments = name, list(arguments)
        self._messages = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 (closed with the child)
        self._process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=REPOSITORY,
            env={**os.environ, **QUIET_CPU},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._messages,
            bufsize=0,  # nothing that was read may hide from `select` in a buffer
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._answers = self._process.stdin, self._process.stdout

    def turn(self, steps: int) -> Turn:
        """As `Side.turn`."""
        try:
            self._requests.write(json.dumps({"steps": steps}).encode() + b"\n")
            while select.select([self._answers], [], [], ANSWER_SECONDS)[0] and (
                line := self._answers.readline()
            ):
                if line.startswith(
                    b"{"
                ):  # a library may have printed something before the child began to serve
                    return Turn(**json.loads(line))
        except BrokenPipeError:
            pass
        raise NotMeasuredError(self._failure())

    def close(self) -> None:
        """Reports to the child that there are no more turns and waits until it has ended with all
        its children.
        """
        end_with_children(self._process, ENDING_SECONDS)
        self._messages.close()

    def _failure(self) -> str:
        self._messages.seek(0)
        print(self._messages.read(), file=sys.stderr)
        return f"`python {' '.join(self._arguments)}` gave no measurement: its messages are above"


@contextmanager
def child_sides(commands: dict[str, list[str]]) -> Iterator[dict[str, Side]]:
    """A side per name, ended afterwards; started one after another by their warm-up turns."""
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
    """Requests a turn of each side per round, in the same order. Returns the turns by name.

    Calls `report_turn` after each turn (round from 1).
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
