"""Jobs of kinds that only tests have, in real processes."""

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
    """A home whose jobs are those of tests too; what still works at the end of the test is
    ended.
    """
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
