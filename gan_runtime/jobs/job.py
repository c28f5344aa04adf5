"""A background job: its declaration, the context of its work, and its process:

    python -m gan_runtime.jobs.job JOB_DIR

A declaration has options, checks, the work, and the destination of the result. The modules of
`DECLARING` declare the core's jobs, and each domain names its modules; each module offers `JOBS`.
The output of the process goes to the job's log.txt. A cancel arrives as SIGTERM and as the file
STOP.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, Field

from gan_runtime.base import disk, framework_settings
from gan_runtime.base.errors import GanRuntimeError, JobError, quoted
from gan_runtime.catalog.domain import DOMAINS
from gan_runtime.records import processes, run_files
from gan_runtime.records.home import Home
from gan_runtime.records.record import Text, UtcTime, now

if TYPE_CHECKING:
    from gan_runtime.jobs.folder import JobDir

NOTHING_STORED = "nothing was stored"
ON_THE_CPU = {"CUDA_VISIBLE_DEVICES": "-1"}  # so that a job uses no GPU memory of a training
SECONDS_BETWEEN = 0.3  # between two progress reports
POLL_SECONDS = 0.03  # between two checks of a staying process for its next job
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
    """Every job by its current name and by its names in earlier versions. Loads no framework."""
    modules = (*DECLARING, *(module for domain in DOMAINS for module in domain.jobs))
    declared = (job for module in modules for job in importlib.import_module(module).JOBS)
    return {name: job for job in declared for name in job.names}


def job_named(name: str) -> Job:
    """The job with this name. Raises JobError for an unknown name; the message lists the names."""
    if name not in jobs():
        names = ", ".join(dict.fromkeys(job.name for job in jobs().values()))
        raise JobError(f"{quoted(name)} is not a background job: choose one of {names}.")
    return jobs()[name]


EndState = Literal["finished", "failed", "cancelled", "lost"]


class End(BaseModel):
    """The end of a job. `reason`: a sentence. `result`: the document that the work returned, empty
    unless finished.
    """

    model_config = ConfigDict(frozen=True)
    state: EndState
    reason: Text
    result: dict[str, Any] = {}
    at: UtcTime = Field(default_factory=now)


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


class Cancelled(BaseException):
    """A user cancelled the job. Not a subclass of Exception, so that no library catches it."""


class Task:
    """The context of a job's work.

    `work`: a folder on the home's disk, so that a finished data set can be moved by a rename.
    `results`: a folder that stays with the job.
    """

    def __init__(
        self,
        home: Home,
        job: JobDir,
        options: dict[str, Any],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.home, self.options = home, options
        self.work, self.results = job.work, job.results
        self._job, self._clock = job, clock
        self._reported_s = -SECONDS_BETWEEN
        self._protected = threading.Event()

    def progress(self, done: int, total: int, sentence: str) -> None:
        """Reports progress. Fast enough to be called for each row.

        Raises:
            Cancelled: a user asked the job to end.
        """
        now_s = self._clock()
        if now_s - self._reported_s < SECONDS_BETWEEN and done != total:
            return
        self._reported_s = now_s
        if self._job.stop_file.exists() and not self._protected.is_set():
            raise Cancelled
        self._job.add_progress(done, total, sentence)

    def past_cancelling(self) -> None:
        """Marks that the job can no longer be cancelled, since its result is being moved."""
        self._protected.set()

    def on_sigterm(self, *_: object) -> None:
        """The handler of SIGTERM. Raises Cancelled, unless it is too late."""
        if not self._protected.is_set():
            raise Cancelled


Work = Callable[[Task], dict[str, Any]]


# ---- the process ---------------------------------------------------------------------------------


def main(job: JobDir) -> int:
    """Runs one job, and in a staying process also later jobs. Returns the exit code of the last
    job: 0 if finished or cancelled, else 1.
    """
    parent, request = os.getppid(), job.request()
    code = _run_to_its_end(job)
    declared = jobs().get(request.kind) if request is not None else None
    if request is None or declared is None or not declared.stays_s:
        return code
    for following in _following(job, request.options, declared, parent):
        code = _run_to_its_end(following)
    return code


def _following(
    first: JobDir, options: Mapping[str, Any], declared: Job, parent: int
) -> Iterator[JobDir]:
    """The next jobs of the same name, until none arrives for `stays_s` seconds, a job needs to load
    something else, or `parent` has exited. Even after a kill the system then gives this process
    another parent.
    """
    home, read = Home(first.path.parent.parent), {first.job_id}
    loaded = declared.loads(home, options)
    idle_since = time.monotonic()
    while os.getppid() == parent and time.monotonic() - idle_since < declared.stays_s:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        waiting = first.waiting(declared.names, read)
        if not waiting:
            time.sleep(POLL_SECONDS)
            continue
        job, request = waiting[0]
        if declared.loads(home, request.options) != loaded:
            return  # the owner starts another process
        if job.take():
            _print_into(job.log)
            yield job
        idle_since = time.monotonic()


def _print_into(log: Path) -> None:
    """Redirects the output of this process to `log`."""
    sys.stdout.flush()
    sys.stderr.flush()
    with os.fdopen(run_files.appending(log), "ab") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)


def _run_to_its_end(job: JobDir) -> int:
    """Runs a job and writes its end."""
    try:
        with FileLock(job.lock).acquire(blocking=False):
            if job.end() is not None:
                return 1
            end = _run(job)
            # Before the end is written, so that no reader of an ended job sees unfinished files.
            job.clear(end.state == "finished")
            job.write_end(end)
            return 0 if end.state in ("finished", "cancelled") else 1
    except Timeout:
        print(f"another process runs {job.job_id} already; this one ends.")
        return 1


def _run(job: JobDir) -> End:
    job.write_process(os.getpid())
    request = job.request()
    if request is None or request.kind not in jobs():
        return End(
            state="failed",
            reason="this version of the program cannot read job.json: start the job again.",
        )
    task = Task(Home(job.path.parent.parent), job, request.options)
    signal.signal(signal.SIGTERM, task.on_sigterm)
    try:
        if job.stop_file.exists():
            return End(state="cancelled", reason=cancelled(request.kind))
        for folder in (job.work, job.results):
            folder.mkdir(exist_ok=True)
        with disk.full_disk_as_home_error(job.work):
            result = _imported(jobs()[request.kind].work)(task)
        return End(state="finished", reason="done", result=result)
    except Cancelled:
        return End(state="cancelled", reason=cancelled(request.kind))
    except GanRuntimeError as error:
        print(error)
        return End(state="failed", reason=str(error))
    except Exception as error:  # the page shows the reason
        traceback.print_exc()
        first = (str(error).splitlines() or [""])[0][:300]
        return End(
            state="failed", reason=f"{type(error).__name__}: {first} (the log has the details)"
        )
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the end is being written


def _imported(entry: str) -> Work:
    module, _, name = entry.partition(":")
    work: Work = getattr(importlib.import_module(module), name)
    return work


if __name__ == "__main__":
    # The module that others import: as __main__ this is a second copy.
    from gan_runtime.jobs import job as module
    from gan_runtime.jobs.folder import JobDir

    with processes.scratch_folder() as scratch:
        framework_settings.use_private_keras_home(scratch)
        code = module.main(JobDir(Path(sys.argv[1])))
    sys.exit(code)
