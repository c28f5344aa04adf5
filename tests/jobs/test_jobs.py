"""Background jobs in real processes: progress, cancel, kill, turns, and cleanup."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gan_runtime.base.errors import HomeError, JobError
from gan_runtime.jobs import job_queue
from gan_runtime.jobs.folder import JobDir, JobRequest
from gan_runtime.jobs.job import job_named
from gan_runtime.jobs.job_queue import GRACE_SECONDS, JobSupervisor
from gan_runtime.records.home import Home

Wait = Callable[..., Any]


def state(job: JobDir) -> str:
    look = job.snapshot()
    assert look is not None
    return look.state


def ended(job: JobDir) -> tuple[str, str]:
    end = job.end()
    assert end is not None
    return end.state, end.reason


def ask(home: Home, kind: str, until: Path | None = None) -> JobDir:
    return job_queue.enqueue(
        home, kind, {"until": str(until or home.path / "never")}, actor="a test"
    )


def test_a_job_reports_its_progress_and_result(
    counting: Home, tmp_path: Path, wait_until: Wait
) -> None:
    job = ask(counting, "count", tmp_path / "go on")
    assert (job.job_id, state(job)) == ("count-0001", "running")
    wait_until(lambda: job.progress().sentence == "counts", "the job tells how far it is")
    assert (job.progress().done, job.progress().total, job.progress().share) == (1, 3, 1 / 3)
    assert (job.work / "half-made.txt").exists()
    (tmp_path / "go on").touch()
    wait_until(job.end, "the job ends")
    look = job.snapshot()
    assert look is not None
    assert look.end is not None
    assert (look.state, look.end.result, look.progress.sentence) == (
        "finished",
        {"counted": 3},
        "has counted",
    )
    assert look.request.asker == "a test"
    assert not job.work.exists()


def test_a_cancelled_job_leaves_no_unfinished_files(counting: Home, wait_until: Wait) -> None:
    job = ask(counting, "count")
    wait_until((job.work / "half-made.txt").exists, "the job has begun")
    job_queue.cancel(job, "a test")
    wait_until(job.end, "the job ends")
    assert ended(job) == ("cancelled", "cancelled on request; nothing was stored.")
    assert not job.work.exists()
    with pytest.raises(JobError, match="job count-0001 is cancelled already"):
        job_queue.cancel(job, "a test")


def test_a_killed_job_is_lost_and_its_unfinished_folder_is_deleted(
    counting: Home, wait_until: Wait
) -> None:
    job = ask(counting, "count")
    wait_until((job.work / "half-made.txt").exists, "the job has begun")
    process = job.process()
    assert process is not None
    process.kill()
    wait_until(lambda: state(job) == "lost", "everybody sees it")
    assert job.end() is None  # not recorded yet
    JobSupervisor(counting).tick(set())
    assert ended(job) == (
        "lost",
        "its process exited unexpectedly; nothing was stored. Start it again.",
    )
    assert not job.work.exists()


def test_an_unresponsive_cancelled_job_is_killed_after_the_grace_period(
    counting: Home, wait_until: Wait
) -> None:
    job = ask(counting, "deaf")
    wait_until(job.work.exists, "the job has begun")
    now_s = 0.0
    keeper = JobSupervisor(counting, clock=lambda: now_s)
    job_queue.cancel(job, "a test")
    keeper.tick(set())
    assert state(job) == "running"
    now_s = GRACE_SECONDS + 1
    keeper.tick(set())
    wait_until(lambda: state(job) == "cancelled", "it is killed")
    keeper.tick(set())
    assert ended(job) == ("cancelled", "cancelled on request; nothing was stored.")


def test_cancel_kills_a_kind_without_unfinished_files_immediately(
    counting: Home, wait_until: Wait
) -> None:
    job = ask(counting, "deaf_and_whole")
    wait_until(job.work.exists, "the job has begun")
    job_queue.cancel(job, "a test")
    wait_until(lambda: state(job) == "cancelled", "it is killed, and no owner had to do it")
    keeper = JobSupervisor(counting)
    # Its first thread can visibly exit a moment before the last one releases the lock.
    wait_until(lambda: keeper.tick(set()) or job.end(), "its end is written down")
    assert ended(job) == ("cancelled", "cancelled on request; its answers are stored.")


def test_a_job_starts_with_the_environment_variables_of_its_kind(
    counting: Home, wait_until: Wait
) -> None:
    job = ask(counting, "tell_color")
    wait_until(job.end, "the job ends")
    end = job.end()
    assert end is not None
    assert end.result == {"color": "green"}


@pytest.mark.parametrize("file", ["random.py", "gan_runtime/__init__.py", "tests/jobs/worker.py"])
def test_a_job_imports_nothing_from_the_current_folder(
    counting: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wait_until: Wait, file: str
) -> None:
    """A user can be in a folder with a program of that name, or in another checkout."""
    foreign = tmp_path / "mine" / file
    foreign.parent.mkdir(parents=True)
    foreign.write_text("raise SystemExit(f'{__file__} was imported')\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path / "mine")
    (tmp_path / "go on").touch()
    job = ask(counting, "count", tmp_path / "go on")
    wait_until(job.end, "the job ends")
    assert ended(job)[0] == "finished", job.log_tail()


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("refuse", "there is nothing to count: give it something."),
        ("break", "RuntimeError: a screw is loose (the log has the details)"),
    ],
)
def test_a_failed_job_reports_its_reason(
    counting: Home, wait_until: Wait, kind: str, reason: str
) -> None:
    job = ask(counting, kind)
    wait_until(job.end, "the job ends")
    assert ended(job) == ("failed", reason)
    assert reason.split(": ")[-1].removesuffix(" (the log has the details)") in job.log_tail()


def test_jobs_of_one_turn_run_one_at_a_time(
    counting: Home, tmp_path: Path, wait_until: Wait
) -> None:
    first, second = (ask(counting, "count_in_turn", tmp_path / name) for name in ("one", "two"))
    keeper = JobSupervisor(counting)
    assert (state(first), keeper.tick({"counter"})) == ("waiting", set())
    assert keeper.tick(set()) == {"counter"}
    assert keeper.tick(set()) == {"counter"}
    assert (state(first), state(second)) == ("running", "waiting")
    (tmp_path / "one").touch()
    wait_until(
        lambda: keeper.tick(set()) and state(second) == "running", "the second job has its turn"
    )
    assert state(first) == "finished"
    job_queue.cancel(second, "a test")
    wait_until(lambda: not keeper.tick(set()), "the turn is free")


def test_a_waiting_job_is_cancelled_without_starting(counting: Home) -> None:
    job = ask(counting, "count_in_turn")
    job_queue.cancel(job, "a test")
    assert state(job) == "cancelled"
    JobSupervisor(counting).tick(set())
    assert ended(job) == ("cancelled", "cancelled on request; nothing was stored.")
    assert not job.log.exists()


def test_a_job_is_started_once(counting: Home, tmp_path: Path) -> None:
    job = ask(counting, "count", tmp_path / "go on")
    process = job.process()
    job_queue.start(job)
    JobSupervisor(counting).tick(set())
    assert process is not None
    assert job.process() == process


def test_torn_files_and_foreign_folders_are_ignored(home: Home) -> None:
    assert job_queue.job_dirs(home) == []
    job = JobDir(home.jobs / "count-0003")
    job.path.mkdir(parents=True)
    (home.jobs / ".new-abc").mkdir()
    assert job.snapshot() is None
    job.write_request(JobRequest(kind="count", options={}, asker="a test"))
    job.add_progress(1, 2, "half")
    with job.progress_file.open("a", encoding="utf-8") as file:
        file.write('{"done": 2, "tot')
    assert [look.progress.done for look in job_queue.snapshots(home)] == [1]
    (job.path / "process.json").write_text("{torn", encoding="utf-8")
    (job.path / "end.json").write_text("", encoding="utf-8")
    assert state(job) == "waiting"
    with pytest.raises(JobError, match=r"job 'count-9' is not in .*: there are count-0003\."):
        job_queue.job_dir(home, "count-9")


def test_old_jobs_are_deleted_and_their_numbers_not_reused(
    counting: Home, monkeypatch: pytest.MonkeyPatch, wait_until: Wait
) -> None:
    monkeypatch.setattr(job_queue, "MOST_ENDED", 1)
    for _ in range(2):
        wait_until(ask(counting, "refuse").end, "the job ends")
    assert [job.job_id for job in job_queue.job_dirs(counting)] == ["refuse-0002"]
    shutil.rmtree(counting.jobs / "refuse-0002")
    assert ask(counting, "refuse").job_id == "refuse-0003"


def test_a_full_disk_leaves_no_partial_job(home: Home, files_end_at: Callable[[int], Any]) -> None:
    with files_end_at(0), pytest.raises(HomeError, match="cannot be written"):
        ask(home, "count_in_turn")
    assert job_queue.job_dirs(home) == []


@pytest.mark.parametrize(
    "kind",
    [
        *("prepare_data", "survey_data", "generate", "compute_surface"),
        *("measure_physics", "make_showers", "iterate", "check_tpu"),
    ],
)
def test_a_job_folder_from_an_earlier_version_is_listed(home: Home, kind: str) -> None:
    job = JobDir(home.jobs / f"{kind.replace('_', '-')}-0001")
    job.path.mkdir(parents=True)
    job.write_request(JobRequest(kind=kind, options={"run_id": "quick-0001"}, asker="a test"))
    name = job_named(kind).name
    [look] = job_queue.snapshots(home, name, run_id="quick-0001")
    assert (look.job, look.state, look.request.kind) == (job, "waiting", kind)
    assert job_queue.snapshots(home, name, run_id="quick-0002") == []
