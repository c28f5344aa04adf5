"""Jobs of test-only kinds, in real processes."""

from __future__ import annotations

from collections.abc import Iterator

import psutil
import pytest

from gan_runtime.jobs import job_queue
from gan_runtime.jobs.job import jobs
from gan_runtime.records.home import Home
from tests.jobs.worker import TEST_JOBS


@pytest.fixture
def counting(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """A home with test jobs, too; processes that remain after the test are killed."""
    for name, job in TEST_JOBS.items():
        monkeypatch.setitem(jobs(), name, job)
    monkeypatch.setattr(job_queue, "WORKER", "tests.jobs.worker")
    yield home
    processes = [
        process for job in job_queue.job_dirs(home) if (process := job.process()) is not None
    ]
    for process in processes:
        process.kill()
    psutil.wait_procs(processes, timeout=10)
