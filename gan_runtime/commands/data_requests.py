"""What may be asked of data sets: look through pictures, prepare a set; and what a run waits for. Part of `commands`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gan_runtime.base.errors import DatasetError
from gan_runtime.data import loading
from gan_runtime.data.preparing import Asked
from gan_runtime.jobs import data_work, job_queue
from gan_runtime.jobs.folder import Asked as AskedJob
from gan_runtime.jobs.folder import JobDir, JobLook
from gan_runtime.records.actors import Asker, for_operators, operator
from gan_runtime.records.home import Home

PREPARE, SURVEY = "prepare_data", "survey_data"
WAITS = "waits for data set"
PREVIEW = "preview"  # the name of what is only looked at
OF_A_RUN = operator("a run that needs it")  # who asks for a download


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
    """Asks for a job that prepares the data set `name` from `source`; `options` are those of the preparation.

    Sets that are downloaded have the name of their preparation and no source; others may need no source either.

    Raises:
        DatasetError: the request is wrong, or that data set is being prepared already.
        SpecError: an option is wrong.
        HomeError: the home cannot be written.
    """
    asked = Asked(preparation, name, source, dict(options or {}))
    asked.check()
    wanted = asked.set_name
    known = preparing(home, wanted)
    if known is not None:
        raise DatasetError(
            f"data set {wanted} is being prepared already by job {known.job_id}: wait for it, or cancel it first."
        )
    return job_queue.ask(home, PREPARE, {**data_work.as_options(asked), "name": wanted}, asker.name)


@for_operators
def look_through(
    home: Home, preparation: str, source: Path, options: Mapping[str, Any], *, asker: Asker
) -> JobDir:
    """Asks for a job that looks through pictures and tells what `prepare_data` would make of them. Raises as that."""
    asked = Asked(preparation, PREVIEW, source, dict(options))
    asked.check()
    return job_queue.ask(home, SURVEY, data_work.as_options(asked), asker.name)


def newest_look(home: Home, preparation: str, source: Path, options: Mapping[str, Any]) -> JobLook | None:
    """The newest job that looks or has looked through these pictures in this way; None before the first."""
    wanted = data_work.as_options(Asked(preparation, PREVIEW, source, dict(options)))
    return next((look for look in job_queue.looks(home, SURVEY) if look.asked.options == wanted), None)


def preparing(home: Home, name: str) -> JobDir | None:
    """The job that prepares this data set now."""
    looks = job_queue.looks(home, PREPARE)
    return next((look.job for look in looks if look.is_live and name_of(look.asked) == name), None)


def job_for(home: Home, dataset: str) -> str:
    """The id of the job that a run on this data set has to wait for; empty when the data is at hand.

    What Keras would have to download first, or what can be made from nothing, becomes a job here. Raises DatasetError: there is no such set, or it is damaged.
    """
    known = preparing(home, dataset)
    if known is not None:
        return known.job_id
    if loading.availability(dataset, home).ready:
        return ""
    return prepare_data(home, dataset, asker=OF_A_RUN).job_id


def name_of(asked: AskedJob) -> str:
    """The data set that a job prepares."""
    return str(asked.options.get("name", ""))


def waiting_for(name: str, share: float = 0.0) -> str:
    """Why a run waits: "waits for data set photos (40 %)"."""
    return f"{WAITS} {name} ({share:.0%})".replace("%", " %")
