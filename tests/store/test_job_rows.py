"""Background jobs in the database: a row for each job folder, and an event for each end."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import datetime

import pytest

from gan_runtime.jobs.folder import End, JobDir, JobRequest
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store import ingest, queries
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store

At = Callable[[float], datetime]
Row = tuple[object, ...]


@pytest.fixture
def new_job(home: Home, at: At) -> Callable[..., JobDir]:
    """`new_job("count-0001", 5.0, run_id="quick-0001")` creates a job that is requested 5 s after
    noon and not started.
    """

    def make(job_id: str, seconds: float, **options: object) -> JobDir:
        job = JobDir(home.jobs / job_id)
        job.path.mkdir(parents=True)
        job.write_request(
            JobRequest(
                kind=job_id.rpartition("-")[0], options=options, asker="a test", at=at(seconds)
            )
        )
        return job

    return make


@pytest.fixture
def ingestor(home: Home, store: Store) -> Ingestor:
    """An ingestor with a stopped clock: each scan finds new records."""
    return Ingestor(home, store, clock=lambda: 0.0)


@pytest.fixture
def jobs(ingestor: Ingestor, store: Store) -> Callable[[], list[Row]]:
    """Ingests new records and returns a row for each job."""

    def look() -> list[Row]:
        ingestor.catch_up_news()
        columns = "job_id, kind, state, asked_by, run_id, ended_at, message"
        return store.rows(f"SELECT {columns} FROM jobs ORDER BY job_id")

    return look


def test_job_has_a_row_from_its_request_to_its_end(
    ingestor: Ingestor, jobs: Callable[[], list[Row]], new_job: Callable[..., JobDir], at: At
) -> None:
    job = new_job("count-0001", 0.0)
    assert jobs() == [("count-0001", "count", "waiting", "a test", None, None, "")]
    assert ingestor.catch_up_news() == 0
    job.write_end(End(state="failed", reason="there is nothing to count.", at=at(9)))
    failed = ("count-0001", "count", "failed", "a test", None, at(9), "there is nothing to count.")
    assert jobs() == [failed]
    shutil.rmtree(job.path)
    assert jobs() == []


def test_recorded_end_replaces_the_predicted_one(
    ingestor: Ingestor, jobs: Callable[[], list[Row]], new_job: Callable[..., JobDir], at: At
) -> None:
    job = new_job("count-0001", 0.0)
    job.stop_file.touch()
    [foreseen] = jobs()
    assert foreseen[2] == "cancelled"
    job.write_end(End(state="cancelled", reason="cancelled before it began.", at=at(9)))
    new_job("count-0002", 10.0)  # all folders are read again
    assert jobs()[0][2:] == ("cancelled", "a test", None, at(9), "cancelled before it began.")
    assert ingestor.catch_up_news() == 0


def test_end_of_a_job_is_an_event_of_its_run(
    home: Home, new_run: Callable[..., RunDir], new_job: Callable[..., JobDir], at: At
) -> None:
    new_run("quick-0001")
    new_job("compute-surface-0001", 1.0, run_id="quick-0001").write_end(
        End(state="lost", reason="its process was ended.", at=at(9))
    )
    new_job("prepare-data-0002", 2.0).write_end(End(state="finished", reason="done", at=at(8)))
    new_job("compute-surface-0003", 3.0, run_id="quick-0007").write_end(
        End(state="finished", reason="done")
    )
    store = ingest.store_of(home)
    columns = "run_id, attempt, logged_at, level, message"
    assert store.rows(f"SELECT {columns} FROM events WHERE kind = 'job' ORDER BY logged_at") == [
        (None, None, at(8), "info", "prepare-data-0002 is finished: done"),
        ("quick-0001", 1, at(9), "error", "compute-surface-0001 is lost: its process was ended."),
    ]
    assert list(queries.events(store, "quick-0001")["kind"]) == ["queued", "job"]


def test_new_owner_and_rebuilt_store_have_the_same_job_rows(
    home: Home, new_job: Callable[..., JobDir], at: At
) -> None:
    store = Store()
    new_job("count-0001", 0.0).write_end(End(state="finished", reason="done", at=at(1)))
    waits = new_job("count-0002", 2.0)
    Ingestor(home, store).catch_up()
    waits.write_end(End(state="cancelled", reason="cancelled on request.", at=at(3)))
    Ingestor(home, store).catch_up()
    rows = store.rows("SELECT * FROM jobs ORDER BY job_id")
    assert [(row[0], row[2]) for row in rows] == [
        ("count-0001", "finished"),
        ("count-0002", "cancelled"),
    ]
    assert ingest.store_of(home, []).rows("SELECT * FROM jobs ORDER BY job_id") == rows
