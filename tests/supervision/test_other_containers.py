"""A process of another container or host, whose pid means nothing here, is neither taken for a dead
one nor for another process.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from typing import Any

import pytest
from filelock import FileLock

from gan_runtime.base.errors import HomeInUseError
from gan_runtime.evaluation import while_training
from gan_runtime.jobs import job_queue
from gan_runtime.jobs.folder import JobDir, JobRequest
from gan_runtime.jobs.job_queue import JobSupervisor
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.identity import SILENCE_SECONDS, ProcessIdentity, boot
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.run_folder import RunDir, TrainerProcess
from gan_runtime.supervision import owner
from tests.support.toy_owner import Owner

NewRun = Callable[..., RunDir]
CONTAINER = {"namespace": f"{boot()}:1", "host": "3f2a91"}
HOST = {"namespace": "another-boot:1", "host": "node-7"}


def trained_by(run: RunDir, pid: int, **place: str) -> None:
    """`pid` is also that of a process of this host, which has nothing to do with the run."""
    running = StatusChange(status="running", reason="training")
    journal.append(run.trainer_journal(), 1, running)
    run.write_process(TrainerProcess(pid=pid, started=1.0, attempt=1, **place))


def test_trainer_of_another_container_lives_as_long_as_its_lock(
    home: Home, new_run: NewRun
) -> None:
    run = new_run("quick-0001")
    trained_by(run, os.getpid(), **CONTAINER)
    home_owner = Owner(home)
    with FileLock(run.worker_lock()):
        for seconds in (0.0, 2 * SILENCE_SECONDS):
            home_owner.at(seconds)
        assert home_owner.status(run) == "running"
        assert while_training.is_training(run)
        run.request_stop("a test")  # by its file: a signal would hit this process
        home_owner.after(0.0)
    home_owner.after(0.0)
    assert home_owner.status(run) == "stopped"
    assert not while_training.is_training(run)


def test_trainer_that_another_container_is_starting_is_not_lost(
    home: Home, new_run: NewRun
) -> None:
    run = new_run("quick-0001")
    journal.append(run.supervisor_journal, 1, StatusChange(status="starting", reason="a test"))
    home_owner = Owner(home)
    with FileLock(run.start_lock):
        for seconds in (0.0, SILENCE_SECONDS):
            home_owner.at(seconds)
        assert home_owner.status(run) == "starting"
    home_owner.after(0.0)
    assert home_owner.status(run) == "lost"


def test_trainer_of_another_host_is_lost_after_silence(home: Home, new_run: NewRun) -> None:
    run = new_run("quick-0001")
    trained_by(run, os.getpid(), **HOST)
    home_owner = Owner(home)
    for seconds in (0.0, SILENCE_SECONDS - 1):
        home_owner.at(seconds)
    assert home_owner.status(run) == "running"
    home_owner.at(SILENCE_SECONDS + 1)
    assert home_owner.status(run) == "lost"


def test_trainer_before_a_restart_of_this_host_is_lost_at_once(home: Home, new_run: NewRun) -> None:
    run = new_run("quick-0001")
    trained_by(run, os.getpid(), namespace="another-boot:1", host=platform.node())
    home_owner = Owner(home)
    home_owner.at(0.0)
    assert home_owner.status(run) == "lost"


def begun_job(home: Home, started: float, **place: str) -> JobDir:
    job = JobDir(home.jobs / "count-0001")
    job.work.mkdir(parents=True)
    job.write_request(JobRequest(kind="count", options={}, asker="a test"))
    identity = ProcessIdentity(pid=os.getpid(), started=started, **place)
    job.process_file.write_text(identity.model_dump_json(), encoding="utf-8")
    return job


def state(job: JobDir) -> str:
    JobSupervisor(Home(job.path.parent.parent)).tick(set())
    snapshot = job.snapshot()
    assert snapshot is not None
    return snapshot.state


def test_job_of_another_container_keeps_its_files_until_it_ends(home: Home) -> None:
    job = begun_job(home, started=1.0, **CONTAINER)
    with FileLock(job.lock):
        assert state(job) == "running"
        assert job.work.is_dir()
    assert (state(job), job.work.exists()) == ("lost", False)


def test_job_of_another_host_is_lost_after_silence(home: Home) -> None:
    job = begun_job(home, started=1.0, **HOST)
    assert state(job) == "running"
    long_ago = job.process_file.stat().st_mtime - 3_600.0
    os.utime(job.process_file, (long_ago, long_ago))
    job.log.touch()
    assert state(job) == "running", "it still prints"
    os.utime(job.log, (long_ago, long_ago))
    assert state(job) == "lost"


def test_cancel_signals_no_process_with_the_pid_of_another_container(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    signaled: list[Any] = []
    monkeypatch.setattr(os, "killpg", lambda *arguments: signaled.append(arguments))
    job = begun_job(home, started=1.0, **CONTAINER)
    with FileLock(job.lock):
        job_queue.cancel(job, "a test")
    assert (signaled, job.stop_file.exists()) == ([], True)


@pytest.mark.parametrize(
    ("namespace", "place"),
    [(f"{boot()}:1", r"in another container \(host name .+\)"), ("", "on host .+")],
)
def test_refusal_says_where_the_owner_is(home: Home, namespace: str, place: str) -> None:
    first = owner.acquire(home)
    try:
        entry = owner.holder(home)
        assert entry is not None
        elsewhere = entry.model_copy(update={"namespace": namespace})
        home.owner_lock.with_suffix(".json").write_text(elsewhere.model_dump_json())
        with pytest.raises(HomeInUseError, match=f"process {os.getpid()} {place} since"):
            owner.acquire(home)
    finally:
        first.release()


def test_owner_of_another_container_that_was_killed_is_replaced_at_once(home: Home) -> None:
    """Its lock is free, which holds for all containers of a host."""
    first = owner.acquire(home)
    entry = owner.holder(home)
    assert entry is not None
    first.release()
    killed = entry.model_copy(update={"host": "3f2a91", "namespace": CONTAINER["namespace"]})
    home.owner_lock.with_suffix(".json").write_text(killed.model_dump_json())

    def waits(_: float) -> None:
        raise AssertionError("it waits for the counter of an owner that cannot be there")

    owner.acquire(home, sleep=waits).release()
