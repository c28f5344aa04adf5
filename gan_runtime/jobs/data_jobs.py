"""The jobs about data sets: preparing one, and looking through pictures before that; and what
a run waits for.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gan_runtime.data import loading, preparations, uploads
from gan_runtime.data.preparations import PREPARATIONS, Asked
from gan_runtime.jobs import job_queue
from gan_runtime.jobs.folder import Asked as AskedJob
from gan_runtime.jobs.folder import JobDir, JobLook
from gan_runtime.jobs.job import Job, as_document
from gan_runtime.jobs.task import Task
from gan_runtime.records.home import Home

PREPARE, SURVEY = "prepare_data", "survey_data"
GRID_FILE = "grid.npy"  # uint8 (up to 64, pixels, pixels, channels), in the results of a look
PREVIEW = "preview"  # the name of what is only looked at
OF_A_RUN = "a run that needs it"  # who asks for a download


def check(_: Home, asked: Asked) -> None:
    """Everything that can be known without reading the source. Raises DatasetError, SpecError."""
    asked.check()


JOBS = (
    Job(
        PREPARE,
        "Prepare a data set",
        "gan_runtime.jobs.data_jobs:prepare",
        options=Asked,
        check=check,
        same=("name",),
        busy="data set {name} is being prepared",
        result="data set",
    ),
    Job(
        SURVEY,
        "Look through pictures",
        "gan_runtime.jobs.data_jobs:look_through",
        options=Asked,
        check=check,
    ),
)


def request_preparation(home: Home, asked: Asked, actor: str) -> JobDir:
    """A job that prepares a data set.

    Sets that are downloaded have the name of their preparation and no source.

    Raises:
        DatasetError, SpecError: the request is wrong.
        JobError: that data set is being prepared already.
        HomeError: the home cannot be written.
    """
    name = asked.set_name if asked.preparation in PREPARATIONS else asked.name
    named = Asked(asked.preparation, name, asked.source, asked.options)
    return job_queue.request(home, PREPARE, named, actor)


def preview_of(preparation: str, source: Path, options: Mapping[str, Any]) -> Asked:
    """The request to look through pictures in this way."""
    return Asked(preparation, PREVIEW, source, dict(options))


def newest_look(home: Home, asked: Asked) -> JobLook | None:
    """The newest job that looks or has looked through these pictures in this way; None before
    the first.
    """
    return job_queue.newest(home, SURVEY, **as_document(asked))


def preparing_job(home: Home, name: str) -> JobLook | None:
    """The job that prepares this data set now."""
    return next((look for look in job_queue.looks(home, PREPARE, name=name) if look.is_live), None)


def job_for(home: Home, dataset: str) -> str:
    """The id of the job that a run on this data set has to wait for; empty when the data is at
    hand.

    What Keras would have to download first, or what can be made from nothing, becomes a job here.

    Raises:
        DatasetError: there is no such set, or it is damaged.
    """
    live = preparing_job(home, dataset)
    if live is not None:
        return live.job.job_id
    if loading.availability(dataset, home).ready:
        return ""
    return request_preparation(home, Asked(dataset), OF_A_RUN).job_id


def name_of(asked: AskedJob) -> str:
    """The data set that a job prepares."""
    return str(asked.options.get("name", ""))


def prepare(task: Task) -> dict[str, Any]:
    """The work: one data set is made, then what was dropped into the browser for it is removed.

    Raises DatasetError, SpecError, HomeError.
    """
    asked = _asked(task.options)
    preparations.prepare(task.home, asked, task.progress, task.work, task.past_cancelling)
    if asked.source is not None:
        uploads.done_with(task.home, asked.source)
    name = asked.set_name
    return {
        "name": name,
        "rows": loading.availability(name, task.home).images,
        "fields": list(loading.fields_of(name, task.home)),
    }


def look_through(task: Task) -> dict[str, Any]:
    """The work: what a preparation would make of its pictures. Raises as `prepare`."""
    look = preparations.survey(_asked(task.options), task.progress)
    np.save(task.results / GRID_FILE, look.grid)
    return {
        **look.summary.model_dump(mode="json"),
        "rows": look.rows,
        "fields": list(look.fields),
        "grid_labels": list(look.grid_labels),
        "bytes_on_disk": look.bytes_on_disk,
    }


def _asked(options: dict[str, Any]) -> Asked:
    source = Path(options["source"]) if options["source"] else None
    return Asked(options["preparation"], options["name"], source, options["options"])
