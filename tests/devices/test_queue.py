"""The queue is a queue: two presses give two runs, its order is a person's, and neither a restart nor a second person loses a run."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gan_runtime import processes
from gan_runtime.askers import operator
from gan_runtime.cli.app import app
from gan_runtime.device_locks import claims, host_devices
from gan_runtime.device_locks.holder import Holder
from gan_runtime.errors import RunStateError
from gan_runtime.home import Home
from gan_runtime.records import journal
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.rundir import RunDir
from gan_runtime.runtime import commands
from gan_runtime.store import memory, queries
from tests.support import toy_trainer
from tests.support.toy_owner import Owner
from tests.support.trainers import end_trainers

NewRun = Callable[..., RunDir]
Wait = Callable[..., Any]
SOMEBODY = operator("a browser")
TOY = {"workload": "mlp_gan", "batch_size_global": 8, "epochs": 2, "precision": "float32"}
PRESS = """
import sys
from pathlib import Path
from gan_runtime.askers import operator
from gan_runtime.home import Home
from gan_runtime.runtime import commands
from gan_runtime.spec import RunSpec
from tests.support.hosts import stated_host

spec, stated = RunSpec.parse({"workload": "mlp_gan", "batch_size_global": 8, "epochs": 2, "precision": "float32"}), stated_host()
print("ready", flush=True)
sys.stdin.readline()
print(commands.submit(Home(Path(sys.argv[1])), spec, stated, "quick", asker=operator("a person")).run_id, flush=True)
"""
MOVE = """
import sys
from pathlib import Path
from gan_runtime.askers import operator
from gan_runtime.home import Home
from gan_runtime.runtime import commands

runs = Home(Path(sys.argv[1])).run_dirs()
print("ready", flush=True)
sys.stdin.readline()
for turn in range(12):
    way = ("up", "down", "next")[(turn + int(sys.argv[2])) % 3]
    commands.move_in_queue([[run] for run in runs], runs[turn % len(runs)], way, asker=operator("a person"))
"""


@pytest.fixture
def waiting(new_run: NewRun) -> list[RunDir]:
    """Four runs, none of which begins while nobody owns the home."""
    return [new_run(f"quick-{number:04d}", seconds=number, **TOY) for number in range(1, 5)]


@pytest.fixture
def taken() -> Iterator[None]:
    """A training of another home has the CPU."""
    with claims.claim([host_devices.CPU], 1, Holder(home="/data/gan", run_id="paper-0042")):
        yield


def order(home: Home) -> list[str]:
    """Numbers of the waiting runs."""
    return [row.run_id[-1] for row in queries.queue(memory.from_journals(home))]


def person(code: str, *words: str) -> subprocess.Popen[str]:
    """A process that is ready to act, and does so once it is told."""
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
    """All of them act at the same moment; what each says."""
    for one in people:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    for one in people:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    said = [one.communicate()[0].strip() for one in people]
    assert [one.returncode for one in people] == [0] * len(people)
    return said


def trained(run: RunDir) -> tuple[datetime, datetime]:
    """From when to when its trainer wrote."""
    at = [record.at for record in journal.read_all(run.trainer_journal())]
    return min(at), max(at)


def has_finished(run: RunDir) -> bool:
    return commands.latest_status(run).status == "finished"


def test_people_who_press_start_at_once_get_a_run_each_and_no_device_twice(
    tmp_path: Path, wait_until: Wait
) -> None:
    homes = [Home(tmp_path / name).prepare() for name in ("one", "two")]
    owner = [sys.executable, "-m", "tests.support.owner"]
    with ExitStack() as stack:
        for home in homes:
            process = subprocess.Popen(
                [*owner, str(home.path), "60", toy_trainer.MODULE], env=processes.environment(os.environ)
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


@pytest.mark.usefixtures("taken")
def test_the_order_of_the_queue_is_a_persons_and_survives_a_restart(
    home: Home, waiting: list[RunDir]
) -> None:
    def press(*words: str) -> list[str]:
        result = CliRunner().invoke(app, ["queue", *words, "--home", str(home.path)])
        assert result.exit_code == 0, result.output
        return order(home)

    assert order(home) == ["1", "2", "3", "4"]
    assert press("next", "quick-0004") == ["4", "1", "2", "3"]
    assert press("down", "quick-0001") == ["4", "2", "1", "3"]
    assert press("up", "quick-0003") == ["4", "2", "3", "1"]
    assert press("up", "quick-0004") == ["4", "2", "3", "1"], "it is the first one already"
    owner = Owner(home)
    owner.after(0.0)
    assert owner.note(waiting[3]).startswith("waiting for CPU (run paper-0042 of another home")
    again = Owner(home)
    again.after(0.0)
    assert [row.run_id[-1] for row in queries.queue(again.store)] == ["4", "2", "3", "1"]


def test_runs_start_in_the_order_of_the_queue(home: Home, waiting: list[RunDir], wait_until: Wait) -> None:
    with claims.claim([host_devices.CPU], 1, Holder()):
        owner = Owner(home)
        owner.after(0.0)
        commands.move_in_queue([[run] for run in waiting], waiting[2], "next", asker=SOMEBODY)
    try:
        wait_until(lambda: owner.after(0.0) or all(map(has_finished, waiting)), "all have trained")
    finally:
        end_trainers(home)
    assert [run.run_id[-1] for run in sorted(waiting, key=trained)] == ["3", "1", "2", "4"]


def test_people_who_move_at_once_lose_no_run_and_no_place(home: Home, waiting: list[RunDir]) -> None:
    at_once([person(MOVE, str(home.path), str(number)) for number in range(4)])
    assert sorted(order(home)) == ["1", "2", "3", "4"]
    states = [commands.latest_status(run) for run in waiting]
    assert [state.status for state in states] == ["queued"] * 4
    assert sorted(state.queue_rank or 0.0 for state in states) == [1.0, 2.0, 3.0, 4.0]


def test_two_runs_with_one_place_are_parted_by_the_next_move(home: Home, waiting: list[RunDir]) -> None:
    """As a kill leaves them in the middle of a move."""
    state = commands.latest_status(waiting[1])
    journal.append(waiting[1].supervisor_journal, 1, state.model_copy(update={"queue_rank": 1.0}))
    assert order(home) == ["1", "2", "3", "4"]
    commands.move_in_queue([[run] for run in waiting], waiting[1], "up", asker=SOMEBODY)
    assert order(home) == ["2", "1", "3", "4"]


def test_what_has_started_or_is_gone_meanwhile_is_left_alone(home: Home, waiting: list[RunDir]) -> None:
    items = [[run] for run in waiting]
    journal.append(
        waiting[0].supervisor_journal, 1, StatusChange(status="starting", reason="starting a trainer")
    )
    commands.delete(waiting[2], asker=SOMEBODY)
    commands.move_in_queue(items, waiting[3], "up", asker=SOMEBODY)
    assert order(home) == ["4", "2"]
    with pytest.raises(RunStateError, match="run quick-0001 is starting: only a waiting run can be moved"):
        commands.move_in_queue(items, waiting[0], "down", asker=SOMEBODY)


@pytest.mark.usefixtures("taken")
def test_the_command_line_says_what_waits_and_who_has_each_device_for_how_long(
    home: Home, waiting: list[RunDir]
) -> None:
    words = ["queue", "--home", str(home.path)]
    told = CliRunner().invoke(app, words, env={"COLUMNS": "160"}).stdout
    assert "run paper-0042 of /data/gan" in told
    assert "quick-0004" in told
    found = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert [row["run_id"][-1] for row in found["queue"]] == ["1", "2", "3", "4"]
    [cpu] = found["devices"]
    assert (cpu["kind"], cpu["taken"], cpu["run_id"]) == ("cpu", True, "paper-0042")
    assert [run.run_id[-1] for run in waiting] == order(home)
