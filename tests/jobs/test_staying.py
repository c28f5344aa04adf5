"""A persistent process for jobs of one kind: one per home, which exits when idle, with the process
that started it, and when a job needs another framework.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from gan_runtime.jobs import job_queue
from gan_runtime.jobs.folder import JobDir
from gan_runtime.jobs.job_queue import JobSupervisor
from gan_runtime.records.home import Home
from tests.jobs.worker import IDLE_S

STARTED_BY_ANOTHER = """
import sys
from pathlib import Path
from gan_runtime.jobs import job_queue
from gan_runtime.jobs.job import jobs
from gan_runtime.records.home import Home
from tests.jobs.worker import TEST_JOBS

jobs().update(TEST_JOBS)
job_queue.WORKER = "tests.jobs.worker"
job_queue.enqueue(Home(Path(sys.argv[1])), "stay", {}, "a test")
sys.stdin.read()
"""
Ends = Callable[[JobDir], dict[str, Any]]


@pytest.fixture
def end_of(counting: Home, wait_until: Callable[..., Any]) -> Ends:
    """Waits for a job while the owner acts; returns its result, which is empty unless finished."""
    owner = JobSupervisor(counting)

    def wait(job: JobDir) -> dict[str, Any]:
        end = wait_until(lambda: owner.tick(set()) or job.end(), f"{job.job_id} ends")
        return dict(end.result)

    return wait


@pytest.fixture
def home(home: Home) -> Iterator[Home]:
    """A home whose persistent process ends with the test."""
    yield home
    if (process := staying(home)) is not None:
        process.kill()


def staying(home: Home) -> psutil.Process | None:
    return JobDir(home.jobs / ".stay").process()


def ask(home: Home, **options: object) -> JobDir:
    return job_queue.enqueue(home, "stay", dict(options), actor="a test")


def test_jobs_share_one_process_but_have_separate_logs(counting: Home, end_of: Ends) -> None:
    first = ask(counting, name="one")
    pid = end_of(first)["pid"]
    jobs = [ask(counting, name=name) for name in ("two", "three")]
    assert [end_of(job)["pid"] for job in jobs] == [pid, pid]
    assert [job.log_tail().strip() for job in (first, *jobs)] == [
        "works on one",
        "works on two",
        "works on three",
    ]


def test_an_idle_process_exits_and_the_next_job_starts_another(
    counting: Home, end_of: Ends, wait_until: Callable[..., Any]
) -> None:
    pid = end_of(ask(counting))["pid"]
    wait_until(lambda: staying(counting) is None, "it ends", seconds=IDLE_S + 30)
    assert end_of(ask(counting))["pid"] != pid


def test_a_job_that_loads_another_framework_gets_a_new_process(
    counting: Home, end_of: Ends
) -> None:
    pid = end_of(ask(counting, loads="tensorflow"))["pid"]
    other = end_of(ask(counting, loads="jax"))["pid"]
    assert other != pid
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    assert end_of(ask(counting, loads="jax"))["pid"] == other


def test_process_exits_when_its_parent_is_killed(
    counting: Home, wait_until: Callable[..., Any]
) -> None:
    words = [sys.executable, "-c", STARTED_BY_ANOTHER, str(counting.path)]
    dashboard = subprocess.Popen(words, stdin=subprocess.PIPE)
    job = JobDir(counting.jobs / "stay-0001")
    wait_until(job.end, "its first job ends")
    assert staying(counting) is not None
    dashboard.send_signal(signal.SIGKILL)
    dashboard.wait()
    wait_until(lambda: staying(counting) is None, "it ends", seconds=IDLE_S * 0.8)


def test_a_cancelled_job_keeps_the_process_for_the_next_job(
    counting: Home, end_of: Ends, wait_until: Callable[..., Any], tmp_path: Path
) -> None:
    pid = end_of(ask(counting))["pid"]
    job = ask(counting, until=str(tmp_path / "never"))
    wait_until(lambda: job.progress().sentence == "waits", "it works")
    job_queue.cancel(job, "a test")
    assert end_of(job) == {}
    assert (end := job.end()) is not None
    assert end.state == "cancelled"
    assert end_of(ask(counting))["pid"] == pid


def test_a_killed_process_loses_only_its_current_job(
    counting: Home, end_of: Ends, wait_until: Callable[..., Any], tmp_path: Path
) -> None:
    working = ask(counting, until=str(tmp_path / "never"))
    waiting = ask(counting)
    wait_until(lambda: working.progress().sentence == "waits", "it works")
    process = staying(counting)
    assert process is not None
    assert not waiting.is_started, "one at a time"
    process.kill()
    assert end_of(working) == {}
    assert (end := working.end()) is not None
    assert end.state == "lost"
    assert end_of(waiting)["pid"] != process.pid


def test_quick_jobs_do_not_evict_other_jobs(
    counting: Home, end_of: Ends, monkeypatch: pytest.MonkeyPatch, wait_until: Callable[..., Any]
) -> None:
    monkeypatch.setattr(job_queue, "MOST_QUICK", 2)
    other = job_queue.enqueue(counting, "refuse", {}, "a test")
    wait_until(other.end, "it ends")
    for _ in range(4):
        end_of(ask(counting))
    assert [job.job_id for job in job_queue.job_dirs(counting)] == [
        "refuse-0001",
        "stay-0004",
        "stay-0005",
    ]
