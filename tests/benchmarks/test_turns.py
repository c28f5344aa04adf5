"""Turns of real child processes, and the gate that pauses a trainer between its host calls."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from benchmarks.effort import Effort
from benchmarks.results import Report
from benchmarks.trainer_side import Gate, GatedRunDir
from benchmarks.turns import WARM_UP_STEPS, NotMeasuredError, Turn, alternate, child_sides

# Serves turns that report a tenth of a second per step.
CHILD = """
from benchmarks.turns import Turn, serve
print("a library greets")
serve(lambda steps: Turn(steps, steps / 10))
"""


def test_sides_alternate_turns_despite_library_output() -> None:
    reports: list[tuple[int, str, Turn]] = []
    with child_sides({"peer": ["-c", CHILD], "ours": ["-c", CHILD]}) as sides:
        turns = alternate(list(sides.values()), 2, 5, 1, lambda *turn: reports.append(turn))
    assert [(number, name) for number, name, _ in reports] == [
        (1, "peer"),
        (1, "ours"),
        (2, "peer"),
        (2, "ours"),
    ]
    assert turns == {"peer": [Turn(5, 0.5)] * 2, "ours": [Turn(5, 0.5)] * 2}


class SlowSide:
    """Reports one second per step; `requests` holds the steps of each request."""

    name = "slow"

    def __init__(self) -> None:
        self.requests: list[int] = []

    def turn(self, steps: int) -> Turn:
        self.requests.append(steps)
        return Turn(steps, float(steps))


def test_a_row_reports_turns_and_rates_without_the_warm_up() -> None:
    report, slow = Report("a row"), SlowSide()
    effort = Effort(rounds=2, steps=5, batch=4, images=8)
    turns = effort.turns({"quick": ["-c", CHILD]}, report.turn, slow)
    report.rates(turns, effort.batch)
    assert turns == {"quick": [Turn(5, 0.5)] * 2, "slow": [Turn(5, 5.0)] * 2}
    assert slow.requests == [WARM_UP_STEPS, 5, 5]
    turn_records, rates = report.records[:4], report.records[4:]
    assert [(record["kind"], record["round"], record["side"]) for record in turn_records] == [
        ("turn", 1, "quick"),
        ("turn", 1, "slow"),
        ("turn", 2, "quick"),
        ("turn", 2, "slow"),
    ]
    assert [
        (record["kind"], record["name"], record["value"], record["unit"]) for record in rates
    ] == [
        ("rate", "quick", 40.0, "images/s"),
        ("rate", "slow", 4.0, "images/s"),
    ]


def test_a_side_that_exits_is_reported_with_its_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    broken = {"broken": ["-c", "import sys; sys.exit('no such device')"]}
    with child_sides(broken) as sides, pytest.raises(NotMeasuredError, match="gave no measurement"):
        sides["broken"].turn(1)
    assert "no such device" in capfd.readouterr().err


class FakeTrainer:
    """A run of host calls of 10 steps that checks for STOP between them; `calls` counts those
    completed before it stopped.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.steps, self.calls, self.answers = 0, 0, io.StringIO()
        gate = Gate(io.StringIO(name), self.answers, lambda: self.steps)
        self.run = GatedRunDir(folder, gate)

    def train(self) -> list[int]:
        """Returns the steps of each answered turn."""
        while not self.run.stop_file.exists():
            self.steps, self.calls = self.steps + 10, self.calls + 1
        return [json.loads(line)["steps"] for line in self.answers.getvalue().splitlines()]


def test_a_turn_ends_with_the_call_that_reaches_the_requested_steps(tmp_path: Path) -> None:
    trainer = FakeTrainer(tmp_path, '{"steps": 10}\n{"steps": 25}\n')
    assert trainer.train() == [10, 30]


def test_the_trainer_stops_when_no_turns_remain(tmp_path: Path) -> None:
    trainer = FakeTrainer(tmp_path, "")
    assert (trainer.train(), trainer.calls) == ([], 0)
    assert (tmp_path / "STOP").exists()
