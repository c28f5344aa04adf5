"""Users and owners in separate processes act at the same time: each request succeeds, and no device
trains two runs at once.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from gan_runtime.records import journal, processes
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir, latest_status
from gan_runtime.store import ingest, queries
from tests.support import toy_trainer
from tests.support.trainers import end_trainers

NewRun = Callable[..., RunDir]
Wait = Callable[..., Any]
TOY = {"workload": "mlp_gan", "batch_size_global": 8, "epochs": 2, "precision": "float32"}
PRESS = """
import sys
from pathlib import Path
from gan_runtime.records.record import operator
from gan_runtime.records.home import Home
from gan_runtime.commands import Commands
from gan_runtime.spec import RunSpec
from tests.support.hosts import stated_host

spec, stated = RunSpec.parse({"workload": "mlp_gan", "batch_size_global": 8, "epochs": 2, "precision": "float32"}), stated_host()
print("ready", flush=True)
sys.stdin.readline()
person = Commands(Home(Path(sys.argv[1])), operator("a person"), lambda: stated)
print(person.submit(spec, "quick").run_id, flush=True)
"""  # noqa: E501
MOVE = """
import sys
from pathlib import Path
from gan_runtime.records.record import operator
from gan_runtime.records.home import Home
from gan_runtime.commands import Commands

home = Home(Path(sys.argv[1]))
runs = [run.run_id for run in home.run_dirs()]
person = Commands(home, operator("a person"))
print("ready", flush=True)
sys.stdin.readline()
for turn in range(12):
    way = ("up", "down", "next")[(turn + int(sys.argv[2])) % 3]
    person.move_in_queue(runs[turn % len(runs)], way, [[run] for run in runs])
"""


@pytest.fixture
def waiting(new_run: NewRun) -> list[RunDir]:
    """Four runs that stay queued while the home has no owner."""
    return [new_run(f"quick-{number:04d}", seconds=number, **TOY) for number in range(1, 5)]


def order(home: Home) -> list[str]:
    """Returns the numbers of the queued runs."""
    return [row.run_id[-1] for row in queries.queue(ingest.store_of(home))]


def person(code: str, *words: str) -> subprocess.Popen[str]:
    """Starts a process that acts on request."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        env=processes.environment(os.environ),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process


def at_once(people: list[subprocess.Popen[str]]) -> list[str]:
    """Lets all processes act at the same time; returns their outputs."""
    for process in people:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in people:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    said = [process.communicate()[0].strip() for process in people]
    assert [process.returncode for process in people] == [0] * len(people)
    return said


def trained(run: RunDir) -> tuple[datetime, datetime]:
    """Returns when its trainer first and last wrote."""
    at = [record.at for record in journal.read_all(run.trainer_journal())]
    return min(at), max(at)


def has_finished(run: RunDir) -> bool:
    return latest_status(run).status == "finished"


def test_simultaneous_starts_get_a_run_each_and_never_share_a_device(
    tmp_path: Path, wait_until: Wait
) -> None:
    homes = [Home(tmp_path / name).prepare() for name in ("one", "two")]
    owner = [sys.executable, "-m", "tests.support.owner"]
    with ExitStack() as stack:
        for home in homes:
            process = subprocess.Popen(
                [*owner, str(home.path), "60", toy_trainer.MODULE],
                env=processes.environment(os.environ),
            )
            stack.callback(end_trainers, home)
            stack.callback(process.wait)
            stack.callback(process.terminate)
        people = [person(PRESS, str(home.path)) for home in homes for _ in range(2)]
        assert sorted(at_once(people)) == ["quick-0001", "quick-0001", "quick-0002", "quick-0002"]
        runs = [run for home in homes for run in home.run_dirs()]
        wait_until(lambda: all(map(has_finished, runs)), "all of them have trained")
    turns = sorted(map(trained, runs))
    assert len(turns) == 4
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(turns))


def test_simultaneous_queue_moves_lose_no_run_and_no_position(
    home: Home, waiting: list[RunDir]
) -> None:
    at_once([person(MOVE, str(home.path), str(number)) for number in range(4)])
    assert sorted(order(home)) == ["1", "2", "3", "4"]
    states = [latest_status(run) for run in waiting]
    assert [state.status for state in states] == ["queued"] * 4
    assert sorted(state.queue_rank or 0.0 for state in states) == [1.0, 2.0, 3.0, 4.0]
