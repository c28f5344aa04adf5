"""Stop always works, with a last checkpoint or a note of the kill; processes that outlive a run
end.

Trainers are in memory or idle processes; tests/full/supervision/test_stops.py uses a launcher and
workers.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from gan_runtime.records import journal, processes
from gan_runtime.records.home import Home
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.record import operator
from gan_runtime.records.run_folder import RunDir, TrainerProcess, latest_status, write_json
from gan_runtime.spec import RunSpec
from gan_runtime.store.folder_watcher import TRAINING_SECONDS
from gan_runtime.supervision.supervisor import LEAVING_SECONDS
from tests.support import idle_trainer
from tests.support.asking import ask_of
from tests.support.fake_trainers import FakeTrainers
from tests.support.toy_owner import GRACE_SECONDS, Owner
from tests.support.trainers import idle, processes_of

NewRun = Callable[..., RunDir]
Wait = Callable[..., Any]
SOMEBODY = operator("a browser")
TOY = {"workload": "mlp_gan", "batch_size_global": 8, "epochs": 3, "precision": "float32"}


@pytest.fixture
def run(new_run: NewRun) -> RunDir:
    return new_run("quick-0001", **TOY)


@pytest.fixture
def idle_run(home: Home, run: RunDir) -> Iterator[RunDir]:
    """A run whose remaining processes are killed after the test."""
    yield run
    for run_folder in home.run_dirs():
        for process in processes_of(run_folder):
            process.kill()


def set_aside(owner: Owner) -> list[str]:
    return [run_id for (run_id,) in owner.store.rows("SELECT run_id FROM ingest.set_aside")]


def test_frozen_trainer_is_killed_after_the_stop_grace_with_a_note(home: Home, run: RunDir) -> None:
    trainers = FakeTrainers()
    owner = Owner(home, trainers.starter)
    owner.after(0.0)
    trainers.of(run).trains(7)
    trainers.of(run).freezes()
    ask_of(run, actor=SOMEBODY).stop(run.run_id)
    owner.after(0.0)
    owner.after(GRACE_SECONDS - 1.0)
    assert (owner.status(run), trainers.of(run).is_alive) == ("running", True)
    owner.after(2.0)
    owner.after(0.0)
    assert owner.status(run) == "stopped"
    assert (
        owner.note(run)
        == "the trainer did not stop within 60 s and was killed without saving (killed by signal"
        " 9); resume continues from the last checkpoint"
    )


def test_trainer_that_hangs_before_its_handshake_can_be_stopped(
    home: Home, idle_run: RunDir, wait_until: Wait
) -> None:
    owner = Owner(home, idle)
    owner.after(0.0)
    [hung] = wait_until(lambda: processes_of(idle_run), "it has started")
    hung.send_signal(signal.SIGSTOP)
    wait_until(lambda: hung.status() == psutil.STATUS_STOPPED, "it hangs")
    assert idle_run.process() is None
    ask_of(idle_run, actor=SOMEBODY).stop(idle_run.run_id)
    owner.after(0.0)
    owner.after(GRACE_SECONDS + 1.0)
    wait_until(lambda: owner.after(0.0) or owner.status(idle_run) == "stopped", "it is stopped")
    assert processes_of(idle_run) == []


def test_stop_signals_the_whole_process_group_of_an_identified_trainer(
    home: Home, new_run: NewRun, wait_until: Wait
) -> None:
    run = new_run("quick-0001", **TOY, workers=2)
    owner = Owner(home, idle)
    try:
        owner.after(0.0)
        wait_until(lambda: len(processes_of(run)) == 3, "launcher and workers are there")
        launcher = processes_of(run)[0]
        run.write_process(TrainerProcess.of(launcher.pid, attempt=1))
        ask_of(run, actor=SOMEBODY).stop(run.run_id)
        owner.after(0.0)
        wait_until(lambda: processes_of(run) == [], "all of them end of SIGTERM")
        owner.after(0.0)
        assert owner.note(run).startswith("the trainer exited without saving (killed by signal 15)")
    finally:
        for process in processes_of(run):
            process.kill()


# ---- processes that outlive their run ------------------------------------------------------------


def left_behind(owner: Owner, run: RunDir, trainers: FakeTrainers) -> None:
    """Records the end of the run while a process of it remains."""
    owner.after(0.0)
    trainers.of(run).trains(2)
    trainers.of(run).freezes()
    trainers.of(run).says("finished", "all epochs done")


def test_worker_that_outlives_its_finished_run_is_ended(home: Home, run: RunDir) -> None:
    trainers = FakeTrainers()
    owner = Owner(home, trainers.starter)
    left_behind(owner, run, trainers)
    owner.after(0.0)
    owner.after(LEAVING_SECONDS - 1.0)
    assert (owner.status(run), trainers.of(run).is_alive) == ("finished", True)
    owner.after(2.0)
    assert (owner.status(run), trainers.of(run).is_alive) == ("finished", False)


def test_run_quarantined_while_training_is_still_supervised_and_stoppable(
    home: Home, run: RunDir
) -> None:
    trainers = FakeTrainers()
    owner = Owner(home, trainers.starter)
    owner.after(0.0)
    trainers.of(run).trains(2)
    owner.after(0.0)
    text = run.supervisor_journal.read_text(encoding="utf-8")
    run.supervisor_journal.write_text(text.replace('"created"', '"greeted"', 1), encoding="utf-8")
    owner.after(TRAINING_SECONDS)
    assert set_aside(owner) == [run.run_id]
    owner.after(LEAVING_SECONDS + 1.0)
    owner.after(LEAVING_SECONDS + 1.0)
    assert trainers.of(run).is_alive, "it goes on"
    trainers.of(run).freezes()
    ask_of(run, actor=SOMEBODY).stop(run.run_id)
    owner.after(0.0)
    owner.after(GRACE_SECONDS + 1.0)
    assert not trainers.of(run).is_alive
    owner.after(0.0)
    assert latest_status(run).status == "stopped", "its journal says so"


def test_next_owner_ends_a_trainer_that_outlived_its_run_and_owner(
    home: Home, run: RunDir, new_run: NewRun
) -> None:
    trainers = FakeTrainers()
    left_behind(Owner(home, trainers.starter), run, trainers)
    waiting = new_run("quick-0002", seconds=1, **TOY)
    owner = Owner(home, trainers.starter)
    owner.at(0.0)
    owner.at(LEAVING_SECONDS - 1.0)
    assert trainers.of(run).is_alive, "it has as long to go by itself as with the first owner"
    assert owner.status(waiting) == "queued", "the device is not free as long as it lives"
    owner.at(LEAVING_SECONDS + 1.0)
    assert not trainers.of(run).is_alive
    owner.after(0.0)
    assert owner.status(waiting) == "starting"


def test_trainer_that_outlived_an_attempt_is_ended_before_the_next_attempt(
    home: Home, run: RunDir
) -> None:
    trainers = FakeTrainers()
    left_behind(Owner(home, trainers.starter), run, trainers)
    remaining = trainers.of(run)
    journal.append(
        run.supervisor_journal, 2, StatusChange(status="queued", reason="resumed", queue_rank=1.0)
    )
    owner = Owner(home, trainers.starter)
    owner.at(0.0)
    owner.at(LEAVING_SECONDS + 1.0)
    assert not remaining.is_alive
    owner.after(0.0)
    assert trainers.of(run).attempt.number == 2
    later = Owner(home, trainers.starter)
    later.at(0.0)
    later.at(LEAVING_SECONDS + 1.0)
    assert trainers.of(run).is_alive, "nobody ends that one"


def test_next_owner_ends_unidentified_processes_of_an_ended_run(
    home: Home, idle_run: RunDir, wait_until: Wait
) -> None:
    """They were started by a former owner, are frozen, and never identified themselves."""
    Owner(home, idle).after(0.0)
    [remaining] = wait_until(lambda: processes_of(idle_run), "it is there")
    remaining.send_signal(signal.SIGSTOP)
    journal.append(
        idle_run.trainer_journal(), 1, StatusChange(status="finished", reason="all epochs done")
    )
    owner = Owner(home, idle)
    owner.at(0.0)
    owner.at(LEAVING_SECONDS - 1.0)
    assert processes_of(idle_run) == [remaining]
    owner.at(LEAVING_SECONDS + 1.0)
    assert processes_of(idle_run) == []


def test_processes_that_are_not_of_an_ended_run_of_this_home_survive(
    home: Home, new_run: NewRun, wait_until: Wait
) -> None:
    """Processes of another home with the same name prefix, with the former pid of a trainer, or
    with a run folder on the command line.
    """
    ended, other = new_run("quick-0002"), Home(home.path.with_name(f"{home.path.name}-2")).prepare()
    journal.append(
        ended.trainer_journal(), 1, StatusChange(status="finished", reason="all epochs done")
    )
    elsewhere = RunDir(Path(shutil.copytree(ended.path, other.runs / ended.run_id)))
    write_json(elsewhere.spec_path, RunSpec.parse(TOY).model_dump())
    trainer = [sys.executable, "-m", idle_trainer.MODULE, str(elsewhere.path), "1", "cpu"]
    reads = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    commands_of = (trainer, reads, [*reads, str(ended.path)], [*reads, str(ended.path), "1", "cpu"])
    environment = processes.environment(os.environ)
    strangers = [
        subprocess.Popen(words, stdin=subprocess.PIPE, env=environment) for words in commands_of
    ]
    former = TrainerProcess(pid=strangers[1].pid, started=1.0, born="boot:1", attempt=1)
    ended.write_process(former)
    try:
        wait_until(lambda: processes_of(elsewhere), "it trains")
        owner = Owner(home, idle)
        owner.at(0.0)
        owner.at(LEAVING_SECONDS + 1.0)
        assert [stranger.poll() for stranger in strangers] == [None] * len(strangers)
    finally:
        for stranger in strangers:
            stranger.kill()
            stranger.wait()
