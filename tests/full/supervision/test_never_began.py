"""Owners killed while starting a run, and who then holds its lock: real owners, launchers and
workers.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import psutil
import pytest

from gan_runtime.records import journal, processes
from gan_runtime.records.home import REPOSITORY, Home
from gan_runtime.records.identity import ProcessIdentity
from gan_runtime.records.run_folder import RunDir, latest_status
from gan_runtime.records.states import Reason, cause
from gan_runtime.store import queries
from gan_runtime.supervision.starters import HANDSHAKE_SECONDS
from tests.support.toy_owner import Owner
from tests.support.trainers import end_trainers, processes_of

NewRun = Callable[..., RunDir]
Wait = Callable[..., Any]
TOY = {"workload": "mlp_gan", "batch_size_global": 8, "epochs": 3, "precision": "float32"}


def owner_dies(home: Home, when: str) -> str:
    """Runs a real owner that is killed by a signal; returns its output."""
    command = [sys.executable, "-m", "tests.support.dying_owner", str(home.path), when]
    died = subprocess.run(
        command,
        env=processes.environment(os.environ),
        stdout=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
    )
    assert died.returncode == -9
    return died.stdout


def states(run: RunDir) -> list[tuple[int, str]]:
    return [
        (change.attempt, change.status) for _, change in journal.statuses(run.supervisor_journal)
    ]


def test_run_is_requeued_if_its_owner_is_killed_before_starting_it(
    home: Home, new_run: NewRun, wait_until: Wait
) -> None:
    run, later = new_run("quick-0001", seconds=1, **TOY), new_run("quick-0002", seconds=2, **TOY)
    owner_dies(home, "before")
    assert states(run) == [(1, "queued"), (1, "starting")]
    owner = Owner(home)
    try:
        owner.at(0.0)
        assert states(run) == [(1, "queued"), (1, "starting"), (2, "queued"), (2, "starting")]
        events = queries.events(owner.store, run.run_id)
        assert cause(Reason.REQUEUED).sentence in list(events["message"])
        wait_until(
            lambda: owner.after(0.0) or owner.status(run) == "finished", "it trains to its end"
        )
        assert states(later)[:1] == [(1, "queued")], "its place is before that of a later run"
        wait_until(
            lambda: owner.after(0.0) or owner.status(later) == "finished", "the later one follows"
        )
        assert latest_status(later).attempt == 1
    finally:
        end_trainers(home)


def test_no_second_trainer_starts_while_one_is_being_spawned(
    home: Home, new_run: NewRun, wait_until: Wait
) -> None:
    run = new_run("quick-0001", **TOY)
    spawned = psutil.Process(int(owner_dies(home, "forked")))
    born = ProcessIdentity.of(spawned.pid)
    owner = Owner(home)
    try:
        assert processes_of(run) == [], "the table of processes does not tell of it"
        for seconds in (0.0, HANDSHAKE_SECONDS - 1.0):
            owner.at(seconds)
            assert states(run) == [(1, "queued"), (1, "starting")]
        spawned.kill()
        wait_until(lambda: born.process() is None, "it is gone")
        owner.after(0.0)
        assert states(run)[2:] == [(2, "queued"), (2, "starting")]
    finally:
        spawned.kill()
        end_trainers(home)


def test_start_lock_stays_taken_until_all_workers_exit(
    home: Home, new_run: NewRun, wait_until: Wait
) -> None:
    """A worker whose launcher was killed still holds the start lock; the process table may be that
    of another container.
    """
    run = new_run("quick-0001", **TOY, workers=2)
    owner = Owner(home)
    try:
        owner.at(0.0)
        wait_until(lambda: len(processes_of(run)) == 3, "launcher and workers are there")
        launcher = processes_of(run)[0]
        launcher.kill()
        launcher.wait()
        assert processes_of(run) != [], "its workers are left"
        with run.start_lock.open("rb") as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    finally:
        end_trainers(home)
    wait_until(lambda: processes_of(run) == [], "none is left")

    def is_free() -> bool:
        with run.start_lock.open("rb") as file, contextlib.suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return True
        return False

    # A process that has left the process table may still be closing its files.
    wait_until(is_free, "the lock of the start is free")
