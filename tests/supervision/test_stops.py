"""Stop always stops: every process of a run, with a last checkpoint or a word of the kill; and a resume goes on."""

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

from gan_runtime import processes
from gan_runtime.askers import operator
from gan_runtime.home import Home
from gan_runtime.records import journal
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.run_state import latest_status
from gan_runtime.records.rundir import RunDir, write_json
from gan_runtime.runtime import commands
from gan_runtime.runtime.supervisor import LEAVING_SECONDS
from gan_runtime.spec import RunSpec
from gan_runtime.store import queries
from gan_runtime.training import checkpoints
from tests.support import toy_trainer
from tests.support.toy_owner import GRACE_SECONDS, Owner
from tests.support.trainers import processes_of

NewRun = Callable[..., RunDir]
Wait = Callable[..., Any]
SOMEBODY = operator("a browser")
TOY = {"workload": "mlp_gan", "batch_size_global": 8, "epochs": 2_000, "precision": "float32", "workers": 2}


@pytest.fixture
def two(home: Home, new_run: NewRun) -> Iterator[RunDir]:
    """A run of two workers and their launcher; whatever is left of it goes with the test."""
    run = new_run("quick-0001", **TOY)
    yield run
    for left in home.run_dirs():
        for process in processes_of(left):
            process.kill()


def awaited(wait_until: Wait, owner: Owner, run: RunDir, status: str) -> None:
    wait_until(lambda: owner.after(0.0) or owner.status(run) == status, f"{run.run_id} is {status}")


def set_aside(owner: Owner) -> list[str]:
    return [run_id for (run_id,) in owner.store.rows("SELECT run_id FROM ingest.set_aside")]


def test_a_stop_ends_all_processes_of_a_run_saves_frees_the_accelerator_and_a_resume_goes_on(
    home: Home, two: RunDir, new_run: NewRun, wait_until: Wait
) -> None:
    owner = Owner(home)
    waiting = new_run("quick-0002", seconds=1, **{**TOY, "workers": 1, "epochs": 2})
    awaited(wait_until, owner, two, "running")
    assert len(processes_of(two)) == 3
    commands.stop(two, asker=SOMEBODY)  # a file, so any browser or terminal may ask
    awaited(wait_until, owner, two, "stopped")
    wait_until(lambda: processes_of(two) == [], "nobody is left", 20)
    step = queries.progress(owner.store, two.run_id).step
    newest = checkpoints.load_newest(two.checkpoints)
    assert newest is not None
    assert newest.step == step > 0
    awaited(wait_until, owner, waiting, "finished")
    commands.resume(two, asker=SOMEBODY)
    wait_until(
        lambda: owner.after(0.0) or queries.progress(owner.store, two.run_id).step > step, "it goes on"
    )
    rows = owner.store.rows(
        "SELECT count(*), count(DISTINCT step), max(step) FROM scalars WHERE metric = 'loss_generator' AND run_id = ?",
        [two.run_id],
    )
    assert len(set(rows[0])) == 1, "every step once"


def test_frozen_workers_are_killed_after_the_grace_of_a_stop_and_the_run_says_so(
    home: Home, two: RunDir, wait_until: Wait
) -> None:
    owner = Owner(home)
    awaited(wait_until, owner, two, "running")
    for worker in processes_of(two)[1:]:
        worker.send_signal(signal.SIGSTOP)
    commands.stop(two, asker=SOMEBODY)
    owner.after(0.0)
    owner.after(GRACE_SECONDS - 1.0)
    assert len(processes_of(two)) == 3
    owner.after(2.0)
    awaited(wait_until, owner, two, "stopped")
    assert owner.note(two).startswith(
        "the trainer ended without saving (it did not end within 60 s and was killed"
    )
    wait_until(lambda: processes_of(two) == [], "nobody is left", 20)


def test_a_trainer_that_hangs_before_it_says_who_it_is_can_be_stopped(
    home: Home, two: RunDir, wait_until: Wait
) -> None:
    owner = Owner(home)
    owner.after(0.0)
    [hung] = wait_until(lambda: processes_of(two), "it has started")
    hung.send_signal(signal.SIGSTOP)
    wait_until(lambda: hung.status() == psutil.STATUS_STOPPED, "it hangs")
    assert two.process() is None
    commands.stop(two, asker=SOMEBODY)
    owner.after(0.0)
    owner.after(GRACE_SECONDS + 1.0)
    awaited(wait_until, owner, two, "stopped")
    assert processes_of(two) == []


def left_behind(owner: Owner, two: RunDir, wait_until: Wait) -> psutil.Process:
    """A frozen worker of a run that has said its last word; launcher and other worker are killed."""
    awaited(wait_until, owner, two, "running")
    launcher, first, second = processes_of(two)
    second.send_signal(signal.SIGSTOP)
    wait_until(lambda: second.status() == psutil.STATUS_STOPPED, "a worker stands still")
    launcher.kill()
    first.kill()
    journal.append(two.trainer_journal(), 1, StatusChange(status="finished", reason="all epochs done"))
    return second


def test_a_worker_that_outlives_the_last_word_of_its_run_is_ended(
    home: Home, two: RunDir, wait_until: Wait
) -> None:
    """The launcher, which would have seen to it, is killed at the same moment."""
    owner = Owner(home)
    second = left_behind(owner, two, wait_until)
    awaited(wait_until, owner, two, "finished")
    left = [process.pid for process in processes_of(two)]
    assert left in ([second.pid], [])
    owner.after(LEAVING_SECONDS + 1.0)
    wait_until(lambda: processes_of(two) == [], "nobody is left", 20)
    assert owner.status(two) == "finished"


def outlived(owner: Owner, two: RunDir, wait_until: Wait) -> psutil.Process:
    """The one worker that is left of a run that has said its last word, frozen; nobody who knew of it lives."""
    second = left_behind(owner, two, wait_until)
    wait_until(lambda: processes_of(two) == [second], "it alone is left")
    return second


def test_a_run_that_is_set_aside_while_it_trains_is_looked_after_and_stops_as_any_other(
    home: Home, two: RunDir, wait_until: Wait
) -> None:
    owner = Owner(home)
    awaited(wait_until, owner, two, "running")
    text = two.supervisor_journal.read_text(encoding="utf-8")
    two.supervisor_journal.write_text(text.replace('"created"', '"greeted"', 1), encoding="utf-8")
    wait_until(lambda: owner.after(0.0) or set_aside(owner) == [two.run_id], "the store has set it aside")
    owner.after(LEAVING_SECONDS + 1.0)
    owner.after(LEAVING_SECONDS + 1.0)
    assert len(processes_of(two)) == 3, "its trainer goes on"
    for worker in processes_of(two)[1:]:
        worker.send_signal(signal.SIGSTOP)
    commands.stop(two, asker=SOMEBODY)
    owner.after(0.0)
    owner.after(GRACE_SECONDS + 1.0)
    wait_until(lambda: owner.after(1.0) or processes_of(two) == [], "nobody is left", 20)
    wait_until(lambda: owner.after(0.0) or latest_status(two).status == "stopped", "its journal says so", 20)


def test_what_outlived_its_run_and_the_owner_that_knew_of_it_is_ended_by_the_next_one(
    home: Home, two: RunDir, new_run: NewRun, wait_until: Wait
) -> None:
    left = outlived(Owner(home), two, wait_until)
    two.process_file.unlink()
    waiting = new_run("quick-0002", seconds=1, **{**TOY, "workers": 1, "epochs": 2})
    owner = Owner(home)
    owner.at(0.0)
    owner.at(LEAVING_SECONDS - 1.0)
    assert processes_of(two) == [left], "it has as long to go by itself as with the first owner"
    assert owner.status(waiting) == "queued", "the device is not free as long as it lives"
    owner.at(LEAVING_SECONDS + 1.0)
    assert processes_of(two) == []
    awaited(wait_until, owner, waiting, "finished")


def test_what_outlived_an_attempt_is_ended_while_the_next_attempt_waits(
    home: Home, two: RunDir, wait_until: Wait
) -> None:
    left = outlived(Owner(home), two, wait_until)
    journal.append(two.supervisor_journal, 2, StatusChange(status="queued", reason="resumed", queue_rank=1.0))
    owner = Owner(home)
    owner.at(0.0)
    owner.at(LEAVING_SECONDS + 1.0)
    assert left not in processes_of(two)
    wait_until(lambda: owner.after(0.0) or len(processes_of(two)) == 3, "the next attempt has started")
    later = Owner(home)
    later.at(0.0)
    later.at(LEAVING_SECONDS + 1.0)
    assert len(processes_of(two)) == 3, "nobody ends that one"


def test_a_process_that_is_not_of_an_ended_run_of_this_home_is_left_alone(
    home: Home, new_run: NewRun, wait_until: Wait
) -> None:
    """Of another home whose name begins alike; with the pid that a trainer had; with a run's folder on its command line."""
    ended, other = new_run("quick-0002"), Home(home.path.with_name(f"{home.path.name}-2")).prepare()
    journal.append(ended.trainer_journal(), 1, StatusChange(status="finished", reason="all epochs done"))
    elsewhere = RunDir(Path(shutil.copytree(ended.path, other.runs / ended.run_id)))
    write_json(elsewhere.spec_path, RunSpec.parse({**TOY, "workers": 1}).model_dump())
    trainer = [sys.executable, "-m", toy_trainer.MODULE, str(elsewhere.path), "1", "cpu"]
    reads = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    commands_of = (trainer, reads, [*reads, str(ended.path)], [*reads, str(ended.path), "1", "cpu"])
    environment = processes.environment(os.environ)
    strangers = [subprocess.Popen(words, stdin=subprocess.PIPE, env=environment) for words in commands_of]
    ended.write_process({"pid": strangers[1].pid, "started": 1.0, "born": "boot:1", "attempt": 1})
    try:
        wait_until(lambda: processes_of(elsewhere), "it trains")
        owner = Owner(home)
        owner.at(0.0)
        owner.at(LEAVING_SECONDS + 1.0)
        wait_until(lambda: elsewhere.process() is not None, "the trainer of the other home goes on")
        assert [stranger.poll() for stranger in strangers] == [None] * len(strangers)
    finally:
        for stranger in strangers:
            stranger.kill()
            stranger.wait()
