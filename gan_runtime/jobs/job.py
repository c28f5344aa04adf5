"""What a background job is, declared once for each: its options, when it is refused, its work, and
where its result goes.

The core's jobs are declared in the modules of `DECLARING`, those of a domain in the modules that it
names; each offers `JOBS`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from gan_runtime.base.errors import JobError, quoted
from gan_runtime.catalog.domains import DOMAINS
from gan_runtime.records.home import Home

NOTHING_KEPT = "nothing of it was kept"
ON_THE_CPU = {"CUDA_VISIBLE_DEVICES": "-1"}  # always, alongside whatever trains
DECLARING = (
    "gan_runtime.jobs.data_jobs",
    "gan_runtime.jobs.picture_job",
    "gan_runtime.tpu.check",
    "gan_runtime.evaluation.requests",
)


@dataclass(frozen=True)
class Job:
    """One kind of background job.

    `name`: as its folders call it; `earlier`: names that earlier versions gave their folders.
    `options`: the record of what is asked, a dataclass or a model. `work`: "module:function" of its
    process, which gets a `Task` and returns a small document. `check(home, options)` raises what is
    wrong with a request before anything is written. `same`: the options by which two requests are
    the same; while one of them is live the other is refused with `busy`, a sentence with these
    options.
    `result`: where what it makes goes: a journal of its run, files in its folder, a data set, or
    answers of the home.
    `turn`: among the jobs of one turn one works at a time; an accelerator's name is the turn of its
    trainings as well. Empty: it starts at once. `environment`: variables of its process, for
    libraries that read them once. `kept`: what is left of a job that did not finish.
    `killed_at_once`: a cancel need not wait for a library that listens to no signal; only where
    nothing can be left half-made.
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
    kept: str = NOTHING_KEPT
    killed_at_once: bool = False
    earlier: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Under which its folders are known."""
        return (self.name, *self.earlier)


@cache
def jobs() -> dict[str, Job]:
    """Every job by its name, and by the names that earlier versions had for it.

    Loads no framework.
    """
    modules = (*DECLARING, *(module for domain in DOMAINS for module in domain.jobs))
    declared = (job for module in modules for job in importlib.import_module(module).JOBS)
    return {name: job for job in declared for name in job.names}


def job_named(name: str) -> Job:
    """Raises JobError for a name that no job has; the message lists those that there are."""
    if name not in jobs():
        names = ", ".join(dict.fromkeys(job.name for job in jobs().values()))
        raise JobError(f"{quoted(name)} is no background job: there are {names}.")
    return jobs()[name]


def as_document(options: Any) -> dict[str, Any]:
    """A record of options as job.json keeps it; paths are text."""
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
    """The reason of a job that somebody has cancelled."""
    return f"cancelled on request; {_kept(name)}."


def lost(name: str) -> str:
    """The reason of a job whose process is gone."""
    return f"its process was ended before it was done; {_kept(name)}. Start it again."


def _kept(name: str) -> str:
    return jobs()[name].kept if name in jobs() else NOTHING_KEPT
