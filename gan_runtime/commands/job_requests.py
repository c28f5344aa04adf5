"""What may be asked of background jobs: a new one, an evaluation, and the end of one. Part of `commands`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gan_runtime.data.preparing import Asked
from gan_runtime.evaluation import requests
from gan_runtime.jobs import data_jobs, job_queue
from gan_runtime.jobs.folder import JobDir
from gan_runtime.records.actors import Asker, for_operators
from gan_runtime.records.home import Home
from gan_runtime.tpu import check
from gan_runtime.tpu.plan import Plan


@for_operators
def request_job(home: Home, name: str, options: Any, *, asker: Asker) -> JobDir:
    """Asks for a job. `options`: its record, or the values of one. Raises as `job_queue.request`."""
    return job_queue.request(home, name, options, asker.name)


@for_operators
def evaluate(
    home: Home, run_id: str, name: str, options: Mapping[str, Any] | None = None, *, asker: Asker
) -> JobDir:
    """Asks for a job that evaluates a run. Raises as `evaluation.requests.request`."""
    return requests.request(home, run_id, name, options or {}, asker.name)


@for_operators
def prepare_data(
    home: Home,
    preparation: str,
    name: str = "",
    source: Path | None = None,
    options: Mapping[str, Any] | None = None,
    *,
    asker: Asker,
) -> JobDir:
    """Asks for a job that prepares the data set `name` from `source`. Raises as `data_jobs.request_preparation`."""
    asked = Asked(preparation, name, source, dict(options or {}))
    return data_jobs.request_preparation(home, asked, asker.name)


@for_operators
def check_on_tpu(home: Home, plan: Plan, *, asker: Asker) -> JobDir | None:
    """Asks for a job that compiles those points of a plan that have no answer yet; None when all have one.

    Raises:
        AcceleratorError: the compiler is not installed here.
        HomeError: the answers cannot be kept.
    """
    if not check.unknown(home, plan):
        return None
    return job_queue.request(home, check.CHECK, check.as_options(home, plan), asker.name)


@for_operators
def cancel_job(home: Home, job_id: str, *, asker: Asker) -> None:
    """Asks a waiting or running job to end. Raises JobError when there is none, or it has ended."""
    job_queue.cancel(job_queue.job_dir(home, job_id), asker.name)
