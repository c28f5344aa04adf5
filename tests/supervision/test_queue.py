"""The queue: two submits give two runs, users choose the order, and neither a restart nor a second
user loses a run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from typer.testing import CliRunner

from gan_runtime import device_locks
from gan_runtime.base.errors import RunStateError
from gan_runtime.cli.app import app
from gan_runtime.device_locks import host_devices
from gan_runtime.device_locks.locks import Holder
from gan_runtime.hardware.hosts import Host
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.record import operator
from gan_runtime.records.run_folder import RunDir, latest_status
from gan_runtime.spec import RunSpec
from gan_runtime.store import ingest, queries
from tests.support.asking import ask, ask_of, ids
from tests.support.fake_trainers import FakeTrainers
from tests.support.toy_owner import Owner

NewRun = Callable[..., RunDir]
SOMEBODY = operator("a browser")
TOY = {"workload": "mlp_gan", "batch_size_global": 8, "epochs": 2, "precision": "float32"}


@pytest.fixture
def waiting(new_run: NewRun) -> list[RunDir]:
    """Four runs that do not start while the home has no owner."""
    return [new_run(f"quick-{number:04d}", seconds=number, **TOY) for number in range(1, 5)]


@pytest.fixture
def occupied_device() -> Iterator[None]:
    """A run of another home holds the CPU."""
    with device_locks.claim([host_devices.CPU], 1, Holder(home="/data/gan", run_id="paper-0042")):
        yield


def order(home: Home) -> list[str]:
    """Numbers of the waiting runs."""
    return [row.run_id[-1] for row in queries.queue(ingest.store_of(home))]


@pytest.mark.usefixtures("occupied_device")
def test_user_order_of_the_queue_survives_a_restart(home: Home, waiting: list[RunDir]) -> None:
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


def test_runs_start_in_queue_order(home: Home, waiting: list[RunDir]) -> None:
    trainers = FakeTrainers()
    trainers.elsewhere = Holder(home="/data/gan", run_id="paper-0042")
    owner = Owner(home, trainers.starter)
    owner.after(0.0)
    ask_of(waiting[2]).move_in_queue(waiting[2].run_id, "next", ids([[run] for run in waiting]))
    trainers.elsewhere = None
    for _ in waiting:
        owner.after(1.0)
        trainers.started[-1].finishes()
        owner.after(0.0)
    assert [run_id[-1] for run_id in trainers.run_ids()] == ["3", "1", "2", "4"]


def test_concurrent_submits_and_moves_lose_no_run_or_place(home: Home, host: Host) -> None:
    """Uses threads; tests/full/supervision/test_queue.py uses processes."""

    def submit(_: int) -> str:
        return ask(home, host, actor=SOMEBODY).submit(RunSpec.parse(TOY), "quick").run_id

    with ThreadPoolExecutor(4) as people:
        assert sorted(people.map(submit, range(4))) == [
            f"quick-000{number}" for number in range(1, 5)
        ]
        runs = home.run_dirs()
        moves = [(runs[turn % 4], ("up", "down", "next")[turn % 3]) for turn in range(12)]
        list(
            people.map(
                lambda move: ask_of(move[0]).move_in_queue(
                    move[0].run_id, move[1], ids([[run] for run in runs])
                ),
                moves,
            )
        )
    assert sorted(order(home)) == ["1", "2", "3", "4"]
    assert len({latest_status(run).queue_rank for run in runs}) == 4


def test_move_separates_two_runs_with_the_same_place(home: Home, waiting: list[RunDir]) -> None:
    """A kill in the middle of a move leaves them in this state."""
    state = latest_status(waiting[1])
    journal.append(waiting[1].supervisor_journal, 1, state.model_copy(update={"queue_rank": 1.0}))
    assert order(home) == ["1", "2", "3", "4"]
    ask_of(waiting[1]).move_in_queue(waiting[1].run_id, "up", ids([[run] for run in waiting]))
    assert order(home) == ["2", "1", "3", "4"]


def test_started_or_deleted_runs_are_unchanged_by_moves(home: Home, waiting: list[RunDir]) -> None:
    items = [[run] for run in waiting]
    journal.append(
        waiting[0].supervisor_journal,
        1,
        StatusChange(status="starting", reason="starting a trainer"),
    )
    ask_of(waiting[2], actor=SOMEBODY).delete(waiting[2].run_id)
    ask_of(waiting[3]).move_in_queue(waiting[3].run_id, "up", ids(items))
    assert order(home) == ["4", "2"]
    with pytest.raises(
        RunStateError, match="run quick-0001 is starting: only a waiting run can be moved"
    ):
        ask_of(waiting[0]).move_in_queue(waiting[0].run_id, "down", ids(items))


@pytest.mark.usefixtures("occupied_device")
def test_command_line_shows_waiting_runs_and_device_holders(
    home: Home, waiting: list[RunDir]
) -> None:
    words = ["queue", "--home", str(home.path)]
    output = CliRunner().invoke(app, words, env={"COLUMNS": "160"}).stdout
    assert "run paper-0042 of /data/gan" in output
    assert "quick-0004" in output
    answer = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert [row["run_id"][-1] for row in answer["queue"]] == ["1", "2", "3", "4"]
    [cpu] = answer["devices"]
    assert (cpu["kind"], cpu["taken"], cpu["run_id"]) == ("cpu", True, "paper-0042")
    assert [run.run_id[-1] for run in waiting] == order(home)
