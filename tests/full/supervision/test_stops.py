"""Stops with a real launcher and two real workers: signals reach the group, and remaining processes
are found in the process table.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import psutil
import pytest

from gan_runtime.base.cluster import WorkerRank
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.record import operator
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store import queries
from gan_runtime.supervision.supervisor import LEAVING_SECONDS
from gan_runtime.training import checkpoints
from tests.support.asking import ask_of
from tests.support.toy_engine import PACE_VARIABLE, ToyEngine
from tests.support.toy_owner import GRACE_SECONDS, Owner
from tests.support.trainers import processes_of

NewRun = Callable[..., RunDir]
Wait = Callable[..., Any]
SOMEBODY = operator("a browser")
TOY = {
    "workload": "mlp_gan",
    "batch_size_global": 8,
    "epochs": 2_000,
    "precision": "float32",
    "workers": 2,
}


@pytest.fixture
def two(home: Home, new_run: NewRun) -> Iterator[RunDir]:
    """A run with two workers and their launcher; remaining processes are killed after the test."""
    run = new_run("quick-0001", **TOY)
    yield run
    for run_folder in home.run_dirs():
        for process in processes_of(run_folder):
            process.kill()


def wait_for_status(wait_until: Wait, owner: Owner, run: RunDir, status: str) -> None:
    wait_until(lambda: owner.after(0.0) or owner.status(run) == status, f"{run.run_id} is {status}")


def losses(owner: Owner, run: RunDir) -> np.ndarray:
    """Returns the losses, float32 (steps,), and checks that each step is stored exactly once."""
    rows = owner.store.rows(
        "SELECT step, value FROM scalars WHERE run_id = ? AND metric = 'loss_generator' ORDER BY"
        " step",
        [run.run_id],
    )
    assert [step for step, _ in rows] == list(range(1, len(rows) + 1))
    return np.array([value for _, value in rows], np.float32)


def test_stop_saves_and_ends_all_processes_and_resume_is_exact(
    home: Home, two: RunDir, new_run: NewRun, wait_until: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = Owner(home)
    waiting = new_run("quick-0002", seconds=1, **{**TOY, "workers": 1, "epochs": 2})
    wait_for_status(wait_until, owner, two, "running")
    assert len(processes_of(two)) == 3
    ask_of(two, actor=SOMEBODY).stop(two.run_id)  # a file, so any browser or terminal can do it
    wait_for_status(wait_until, owner, two, "stopped")
    wait_until(lambda: processes_of(two) == [], "nobody is left", 20)
    step = queries.progress(owner.store, two.run_id).step
    newest = checkpoints.load_newest(two.checkpoints)
    assert newest is not None
    assert newest.step == step > 0
    wait_for_status(wait_until, owner, waiting, "finished")
    ask_of(two, actor=SOMEBODY).resume(two.run_id)
    wait_until(
        lambda: owner.after(0.0) or queries.progress(owner.store, two.run_id).step > step,
        "it goes on",
    )
    monkeypatch.setenv(PACE_VARIABLE, "0")
    values = losses(owner, two)
    assert np.array_equal(values, ToyEngine(WorkerRank()).run(len(values)).values["loss_generator"])


def test_frozen_workers_are_killed_after_the_grace_period_of_a_stop(
    home: Home, two: RunDir, wait_until: Wait
) -> None:
    owner = Owner(home)
    wait_for_status(wait_until, owner, two, "running")
    for worker in processes_of(two)[1:]:
        worker.send_signal(signal.SIGSTOP)
    ask_of(two, actor=SOMEBODY).stop(two.run_id)
    owner.after(0.0)
    owner.after(GRACE_SECONDS - 1.0)
    assert len(processes_of(two)) == 3
    owner.after(2.0)
    wait_for_status(wait_until, owner, two, "stopped")
    assert owner.note(two).startswith(
        "the trainer did not stop within 60 s and was killed without saving"
    )
    wait_until(lambda: processes_of(two) == [], "nobody is left", 20)


def left_behind(owner: Owner, two: RunDir, wait_until: Wait) -> psutil.Process:
    """Returns a frozen worker of a run that has logged its end; launcher and other worker are
    killed.
    """
    wait_for_status(wait_until, owner, two, "running")
    launcher, first, second = processes_of(two)
    second.send_signal(signal.SIGSTOP)
    wait_until(lambda: second.status() == psutil.STATUS_STOPPED, "a worker stands still")
    launcher.kill()
    first.kill()
    journal.append(
        two.trainer_journal(), 1, StatusChange(status="finished", reason="all epochs done")
    )
    return second


def remaining_worker(owner: Owner, two: RunDir, wait_until: Wait) -> psutil.Process:
    """Returns the only remaining worker, frozen, of a run that has logged its end; no process that
    knew of it is alive.
    """
    second = left_behind(owner, two, wait_until)
    wait_until(lambda: processes_of(two) == [second], "it alone is left")
    return second


def test_next_owner_ends_a_frozen_worker_of_a_killed_launcher(
    home: Home, two: RunDir, new_run: NewRun, wait_until: Wait
) -> None:
    remaining = remaining_worker(Owner(home), two, wait_until)
    two.process_file.unlink()
    waiting = new_run("quick-0002", seconds=1, **{**TOY, "workers": 1, "epochs": 2})
    owner = Owner(home)
    owner.at(0.0)
    owner.at(LEAVING_SECONDS - 1.0)
    assert processes_of(two) == [remaining], (
        "it has as long to go by itself as with the first owner"
    )
    assert owner.status(waiting) == "queued", "the device is not free as long as it lives"
    owner.at(LEAVING_SECONDS + 1.0)
    assert processes_of(two) == []
    wait_for_status(wait_until, owner, waiting, "finished")
