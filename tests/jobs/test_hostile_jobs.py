"""One bad job folder never takes the home down: an unusable file counts as missing, and all others
continue.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import pytest

from gan_runtime.base.errors import JobError
from gan_runtime.jobs import job_queue
from gan_runtime.jobs.folder import End, JobDir, JobRequest
from gan_runtime.jobs.job_queue import JobSupervisor
from gan_runtime.records.home import Home, next_number
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store import folder_watcher, queries
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store
from tests.support import not_plain

NewRun = Callable[..., RunDir]
HUGE = 10**400
PROCESS = {"pid": 4_000_000, "started": 1e9}
REQUEST = {"kind": "count", "options": {"run_id": "quick-0001"}, "asker": "a test"}


@pytest.fixture
def good(home: Home) -> JobDir:
    """A job that has ended."""
    return _job(home, "count-0001")


def _job(home: Home, job_id: str) -> JobDir:
    job = JobDir(home.jobs / job_id)
    job.path.mkdir(parents=True)
    job.write_request(JobRequest.model_validate(REQUEST))
    job.write_end(End(state="finished", reason="done"))
    return job


@pytest.fixture
def spoiled(home: Home) -> JobDir:
    return _job(home, "count-0002")


def check_that_all_others_go_on(home: Home, good: JobDir, *spoiled: JobDir) -> None:
    """Checks that the owner and a list of jobs still read runs and jobs."""
    store, keeper = Store(), JobSupervisor(home)
    keeper.tick(busy={""})
    Ingestor(home, store).catch_up()
    assert [row.run_id for row in queries.runs(store)] == ["quick-0001"]
    stored = dict(store.rows("SELECT job_id, state FROM jobs"))
    assert stored.pop(good.job_id) == "finished"
    assert stored.keys() <= {job.job_id for job in spoiled}
    assert good.job_id in [look.job.job_id for look in job_queue.snapshots(home)]
    assert all(isinstance(job.log_tail(), str) for job in spoiled)


IMPLAUSIBLE_FILES = (
    ("process.json", json.dumps({**PROCESS, "started": float("nan")})),
    ("process.json", json.dumps({**PROCESS, "started": 1e300})),
    ("process.json", json.dumps({**PROCESS, "started": -1e18})),
    ("process.json", json.dumps({**PROCESS, "pid": 2**40})),
    ("process.json", json.dumps({**PROCESS, "born": "x" * 10**6})),
    ("job.json", '{"kind": "count", "options": {"run_id": 1%s}, "asker": "a"}' % ("0" * 400)),
    ("job.json", json.dumps({**REQUEST, "options": {"run_id": ["quick-0001"]}})),
    ("job.json", json.dumps({**REQUEST, "options": {"run_id": "../.."}})),
    ("job.json", json.dumps({**REQUEST, "options": {"more": "x" * 10**6}})),
    ("job.json", json.dumps({**REQUEST, "at": "0001-01-01T00:00:00Z"})),
    (
        "end.json",
        json.dumps({"state": "finished", "reason": "done", "at": "9999-12-31T23:59:59-12:00"}),
    ),
    ("end.json", json.dumps({"state": "finished", "reason": "x" * 10**7})),
    ("progress.jsonl", '{"done": 1%s, "total": 3}\n' % ("0" * 400)),
    ("progress.jsonl", '{"done": -1, "total": 1e400}\n'),
)


def test_an_implausible_job_file_counts_as_missing(
    home: Home, new_run: NewRun, good: JobDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_run("quick-0001")
    monkeypatch.setattr(job_queue, "start", lambda _: None)
    spoiled = [_job(home, f"count-{number:04d}") for number in range(2, 2 + len(IMPLAUSIBLE_FILES))]
    for job, (file, content) in zip(spoiled, IMPLAUSIBLE_FILES, strict=True):
        (job.path / file).write_text(content)
    check_that_all_others_go_on(home, good, *spoiled)
    for job in spoiled:
        (job.path / "end.json").unlink()
    check_that_all_others_go_on(home, good, *spoiled)


@pytest.mark.parametrize("kind", not_plain.KINDS)
def test_an_irregular_file_in_a_job_folder_blocks_no_other_job(
    home: Home, new_run: NewRun, good: JobDir, kind: str
) -> None:
    """The job's process is not started if its log would be lost."""
    new_run("quick-0001")
    files = ("job.json", "process.json", "end.json", "progress.jsonl", "log.txt", "STOP")
    spoiled = [_job(home, f"count-{number:04d}") for number in range(2, 2 + len(files))]
    for job, file in zip(spoiled, files, strict=True):
        if file in ("log.txt", "STOP"):
            (job.path / "end.json").unlink()
        else:
            job.write_request(JobRequest.model_validate({**REQUEST, "kind": "generate"}))
        not_plain.put(job.path / file, kind)
        if file != "log.txt":
            (job.path / ".start.lock").mkdir()  # this test must not start a process
    check_that_all_others_go_on(home, good, *spoiled)
    assert not any(job.is_started for job in spoiled)


def test_an_unexpected_error_in_one_job_skips_only_that_job(
    home: Home, new_run: NewRun, good: JobDir, spoiled: JobDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error that the file checks should have caught, but did not."""
    new_run("quick-0001")
    row = folder_watcher.job_row

    def unforeseen(look: job_queue.JobSnapshot) -> tuple[object, ...]:
        original = row(look)
        return (
            (*original[:5], "no time", *original[6:])
            if look.job.job_id == spoiled.job_id
            else original
        )

    monkeypatch.setattr(folder_watcher, "job_row", unforeseen)
    check_that_all_others_go_on(home, good, spoiled)


def test_a_named_pipe_blocks_neither_a_stop_nor_the_next_run_number(
    home: Home, new_run: NewRun
) -> None:
    run = new_run("quick-0001")
    os.mkfifo(run.stop_file)
    run.request_stop("a test")
    os.mkfifo(run.process_file)
    assert run.process() is None
    os.mkfifo(home.last_number_file)
    assert next_number(home.runs) == 2


def test_a_job_with_a_non_utf8_path_is_refused_and_leaves_no_folder(
    home: Home,
) -> None:
    with pytest.raises(JobError, match="only paths in UTF-8"):
        job_queue.enqueue(home, "count", {"source": "/data/caf\udce9"}, actor="a test")
    assert [path.name for path in home.jobs.iterdir() if path.is_dir()] == []
