"""Background jobs of data sets: survey the images of a source, and prepare a set."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gan_runtime.data import loading, preparations, uploads
from gan_runtime.data.preparations import PREPARATIONS, PreparationRequest
from gan_runtime.jobs import job_queue
from gan_runtime.jobs.folder import JobDir, JobRequest, JobSnapshot
from gan_runtime.jobs.job import Job, as_document
from gan_runtime.jobs.process import Task
from gan_runtime.records.home import Home

PREPARE, SURVEY = "prepare_data", "survey_data"
GRID_FILE = "grid.npy"  # uint8 (up to 64, pixels, pixels, channels), a result of a survey
PREVIEW = "preview"  # data-set name in a survey's request
OF_A_RUN = "a run that needs it"  # actor name of a download


def check_preparation(_: Home, request: PreparationRequest) -> None:
    """Checks a request as far as possible without reading the source. Raises DatasetError,
    SpecError.
    """
    request.check()


JOBS = (
    Job(
        PREPARE,
        "Prepare a data set",
        "gan_runtime.jobs.core_jobs:prepare",
        options=PreparationRequest,
        check=check_preparation,
        same=("name",),
        busy="data set {name} is being prepared",
        result="data set",
    ),
    Job(
        SURVEY,
        "Survey images",
        "gan_runtime.jobs.core_jobs:survey",
        options=PreparationRequest,
        check=check_preparation,
    ),
)


def request_preparation(home: Home, request: PreparationRequest, actor: str) -> JobDir:
    """Requests a job that prepares a data set. Downloaded sets have the name of their preparation.

    Raises:
        DatasetError, SpecError: the request is wrong.
        JobError: that data set is already being prepared.
        HomeError: the home cannot be written.
    """
    name = request.set_name if request.preparation in PREPARATIONS else request.name
    named = PreparationRequest(request.preparation, name, request.source, request.options)
    return job_queue.request(home, PREPARE, named, actor)


def preview_of(preparation: str, source: Path, options: Mapping[str, Any]) -> PreparationRequest:
    """The request to survey images with these options."""
    return PreparationRequest(preparation, PREVIEW, source, dict(options))


def newest_survey(home: Home, request: PreparationRequest) -> JobSnapshot | None:
    """The newest job that surveys these images with these options; None before the first."""
    return job_queue.newest(home, SURVEY, **as_document(request))


def preparing_job(home: Home, name: str) -> JobSnapshot | None:
    """The job that prepares this data set now."""
    return next((job for job in job_queue.snapshots(home, PREPARE, name=name) if job.is_live), None)


def job_for(home: Home, dataset: str) -> str:
    """The id of the job that a run on this data set must wait for; "" if the data is ready.

    Requests the job itself for a set that is downloaded or simulated.

    Raises:
        DatasetError: there is no such set, or the set is damaged.
    """
    live = preparing_job(home, dataset)
    if live is not None:
        return live.job.job_id
    if loading.availability(dataset, home).ready:
        return ""
    return request_preparation(home, PreparationRequest(dataset), OF_A_RUN).job_id


def name_of(request: JobRequest) -> str:
    """The data set that a job prepares."""
    return str(request.options.get("name", ""))


def prepare(task: Task) -> dict[str, Any]:
    """The work of a job: prepares one data set, then deletes its uploaded files.

    Raises DatasetError, SpecError, HomeError.
    """
    request = _preparation(task.options)
    preparations.prepare(task.home, request, task.progress, task.work, task.past_cancelling)
    if request.source is not None:
        uploads.remove_source(task.home, request.source)
    name = request.set_name
    return {
        "name": name,
        "rows": loading.availability(name, task.home).images,
        "fields": list(loading.fields_of(name, task.home)),
    }


def survey(task: Task) -> dict[str, Any]:
    """The work of a job: reports what a preparation would do with its images. Raises as
    `prepare`.
    """
    result = preparations.survey(_preparation(task.options), task.progress)
    np.save(task.results / GRID_FILE, result.grid)
    return {
        **result.summary.model_dump(mode="json"),
        "rows": result.rows,
        "fields": list(result.fields),
        "grid_labels": list(result.grid_labels),
        "bytes_on_disk": result.bytes_on_disk,
    }


def _preparation(options: dict[str, Any]) -> PreparationRequest:
    source = Path(options["source"]) if options["source"] else None
    return PreparationRequest(options["preparation"], options["name"], source, options["options"])
