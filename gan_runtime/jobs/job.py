"""The declaration of a background job: options, checks, the work, and the destination of the
result.

The modules of `DECLARING` declare the core's jobs, and each domain names its modules; each module
offers `JOBS`.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from gan_runtime.base.errors import JobError, PackageError, quoted
from gan_runtime.catalog.domain import DOMAINS
from gan_runtime.catalog.table import declared
from gan_runtime.records.home import Home

log = logging.getLogger("gan_runtime")
NOTHING_STORED = "nothing was stored"
ON_THE_CPU = {"CUDA_VISIBLE_DEVICES": "-1"}  # so that a job uses no GPU memory of a training
DECLARING = (
    "gan_runtime.jobs.core_jobs",
    "gan_runtime.jobs.image_job",
    "gan_runtime.bundles.generator_export",
    "gan_runtime.tpu.check",
    "gan_runtime.gpu.check",
    "gan_runtime.evaluation.jobs",
)


@dataclass(frozen=True)
class Job:
    """One kind of background job.

    `name`: the prefix of its folders; `earlier`: the prefixes in earlier versions. `options`: the
    record of a request, a dataclass or a model. `work`: "module:function", which gets a `Task` and
    returns a small document. `check(home, options)`: raises an error for an invalid request before
    anything is written. `same`: the options that make two requests equal; while one is live, the
    other is refused with `busy`, a sentence with these options. `result`: the destination of the
    result: a journal of its run, files in its folder, a data set, or answers of the home. `turn`:
    jobs with the same turn run one at a time, and an accelerator's name is also the turn of its
    trainings; with "" the job starts at once. `environment`: variables of its process, for
    libraries that read them once. `stored`: a phrase for what an unfinished job leaves.
    `killed_at_once`: whether a cancel kills its process, because a library handles no signal; only
    for jobs that cannot leave unfinished files. `stays_s`: seconds that its process waits for the
    next job of its name, if the work loads slowly; it also ends with the process that started it.
    `loads(home, options)`: what the work has to load; a staying process takes only jobs with an
    equal value.
    """

    name: str
    title: str
    work: str
    options: type[Any] = dict
    check: Callable[[Home, Any], None] = lambda _home, _options: None
    same: tuple[str, ...] = ()
    busy: str = ""
    result: Literal["journal", "files", "data set", "answers"] = "files"
    turn: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    stored: str = NOTHING_STORED
    killed_at_once: bool = False
    earlier: tuple[str, ...] = ()
    stays_s: float = 0.0
    loads: Callable[[Home, Mapping[str, Any]], str] = lambda _home, _options: ""

    @property
    def names(self) -> tuple[str, ...]:
        """All names that folders of this job can have."""
        return (self.name, *self.earlier)


@cache
def jobs() -> dict[str, Job]:
    """Every job by its current name and by its names in earlier versions. Loads no framework.
    Modules of a package that cannot be loaded, and jobs with a name that is taken, are skipped with
    a warning in the log.
    """
    rows: list[Job] = [job for module in DECLARING for job in importlib.import_module(module).JOBS]
    for name, domain in DOMAINS.items():
        for module in domain.jobs:
            try:
                rows += declared(f"{module}:JOBS", tuple)
            except PackageError as error:
                log.warning("jobs of %s are skipped: %s", name, error)
    table: dict[str, Job] = {}
    for job in rows:
        if not isinstance(job, Job):
            log.warning("%s is skipped: declare a Job", quoted(job))
        elif taken := [name for name in job.names if table.get(name, job) != job]:
            log.warning("job %s is skipped: the name %s is taken", job.name, quoted(taken[0]))
        else:
            table |= dict.fromkeys(job.names, job)
    return table


def job_named(name: str) -> Job:
    """The job with this name. Raises JobError for an unknown name; the message lists the names."""
    if name not in jobs():
        names = ", ".join(dict.fromkeys(job.name for job in jobs().values()))
        raise JobError(f"{quoted(name)} is not a background job: choose one of {names}.")
    return jobs()[name]


def as_document(options: Any) -> dict[str, Any]:
    """An option record in the form stored in job.json, with paths as text."""
    if isinstance(options, BaseModel):
        return options.model_dump(mode="json")
    values = (
        asdict(options)
        if is_dataclass(options) and not isinstance(options, type)
        else dict(options)
    )
    return {
        name: str(value) if isinstance(value, Path) else value for name, value in values.items()
    }


def cancelled(name: str) -> str:
    """The reason of a job that a user has cancelled."""
    return f"cancelled on request; {_stored(name)}."


def lost(name: str) -> str:
    """The reason of a job whose process exited without writing an end."""
    return f"its process exited unexpectedly; {_stored(name)}. Start it again."


def _stored(name: str) -> str:
    return jobs()[name].stored if name in jobs() else NOTHING_STORED
