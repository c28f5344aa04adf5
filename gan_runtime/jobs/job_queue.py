"""Asking for jobs, starting, cancelling and listing them, and what the owner of a home does for
them at each tick.

Files only, so any process may ask: page, command line, owner. The owner ends jobs that do not stop,
writes down the end of those that died, and gives the turns.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from pydantic_core import PydanticSerializationError

from gan_runtime.base import disk
from gan_runtime.base.deadlines import Patience
from gan_runtime.base.errors import GanRuntimeError, HomeError, JobError, quoted
from gan_runtime.hardware import framework_settings
from gan_runtime.jobs.folder import Asked, JobDir, JobLook
from gan_runtime.jobs.job import Job, as_document, job_named, jobs
from gan_runtime.records import processes, run_files
from gan_runtime.records.home import Home, is_run_name, next_number

WORKER = "gan_runtime.jobs.worker"
KEPT = 100  # folders of ended jobs


def request(home: Home, name: str, options: Any, actor: str) -> JobDir:
    """A new job, once its declaration finds nothing wrong.

    `options`: its record, or the values of one. `actor`: who asks.

    Raises:
        JobError: there is no such job, or the same is under way.
        HomeError: see `ask`. Others as the job's `check`.
    """
    job = job_named(name)
    record = job.options(**options) if isinstance(options, Mapping) else options
    job.check(home, record)
    document = as_document(record)
    live = newest_live(home, job, document) if job.busy else None
    if live is not None:
        raise JobError(
            f"{job.busy.format(**document)} already by job {live.job.job_id}: wait for it, or"
            " cancel it first."
        )
    return ask(home, name, document, actor)


def ask(home: Home, kind: str, options: dict[str, Any], asker: str) -> JobDir:
    """A new job.

    One that need not wait for its turn starts at once; others are started by the owner of the home.

    Raises:
        HomeError: the home cannot be written, or its disk is full; nothing is left behind.
    """
    home.prepare()
    disk.require(home.path, disk.LEAST_BYTES, "a background job")
    job = _new(home, Asked(kind=kind, options=options, asker=asker))
    if not job_named(kind).turn:
        start(job)
    _forget_old(home)
    return job


def start(job: JobDir) -> None:
    """Starts its process, in a session of its own: closing the page, the dashboard or the
    terminal does not reach it.
    """
    with contextlib.suppress(Timeout), FileLock(job.start_lock).acquire(blocking=False):
        if job.is_started:
            return
        with os.fdopen(run_files.appending(job.log), "ab") as log:
            child = subprocess.Popen(
                [sys.executable, "-m", WORKER, str(job.path)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={
                    **processes.environment(framework_settings.pinned(os.environ)),
                    **_environment(job),
                },
                start_new_session=True,
            )
        job.introduce(
            child.pid
        )  # it does so itself, but whoever looks before that must not take it for waiting


def cancel(job: JobDir, asker: str) -> None:
    """Asks it to end; asking twice changes nothing.

    An owner ends it by force when it takes too long.

    Raises:
        JobError: it has ended already.
    """
    look = job.look()
    if look is not None and not look.is_live:
        raise JobError(
            f"job {job.job_id} is {look.state} already: only a waiting or running job can be"
            " cancelled."
        )
    job.request_stop(asker)
    declared = _declared(job)
    signal_group(
        job, signal.SIGKILL if declared is not None and declared.killed_at_once else signal.SIGTERM
    )


def signal_group(job: JobDir, number: signal.Signals) -> None:
    """To the job's process and its children; nothing when it is gone or has not begun."""
    process = job.process()
    if process is not None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)


def looks(home: Home, name: str = "", /, **options: Any) -> list[JobLook]:
    """All jobs, the newest first; or those of one name, whose options have these values."""
    names = job_named(name).names if name else ()
    matching = [job for job in reversed(job_dirs(home)) if _matches(job.asked(), names, options)]
    return [look for job in matching if (look := job.look()) is not None]


def _matches(asked: Asked | None, names: tuple[str, ...], options: Mapping[str, Any]) -> bool:
    if asked is None or (names and asked.kind not in names):
        return False
    return all(asked.options.get(option) == value for option, value in options.items())


def newest(
    home: Home, name: str, /, *, also_cancelled: bool = True, **options: Any
) -> JobLook | None:
    """The newest job of this name whose options have these values; None before the first."""
    of_name = looks(home, name, **options)
    return next((look for look in of_name if also_cancelled or look.state != "cancelled"), None)


def newest_live(home: Home, job: Job, options: Mapping[str, Any]) -> JobLook | None:
    """The job under way that does the same as one with these options would do."""
    same = {name: options.get(name) for name in job.same}
    return next((look for look in looks(home, job.name, **same) if look.is_live), None)


def job_dirs(home: Home) -> list[JobDir]:
    """Every job's folder, in the order in which they were asked for."""
    try:
        paths = [path for path in home.jobs.iterdir() if is_run_name(path.name) and path.is_dir()]
    except (FileNotFoundError, NotADirectoryError):  # no job yet, or a home that no folder can be
        return []
    return [JobDir(path) for path in sorted(paths, key=lambda path: path.name.rpartition("-")[2])]


def job_dir(home: Home, job_id: str) -> JobDir:
    """One job's folder.

    Raises JobError when there is none; the message lists the newest that exist.
    """
    known = {job.job_id: job for job in job_dirs(home)}
    if job_id not in known:
        others = f"there are {', '.join(list(known)[-8:])}" if known else "there are no jobs yet"
        raise JobError(f"job {quoted(job_id)} is not stored in {home.path}: {others}.")
    return known[job_id]


def _declared(job: JobDir) -> Job | None:
    """None for a job that only another version has."""
    asked = job.asked()
    return jobs().get(asked.kind) if asked is not None else None


def _environment(job: JobDir) -> Mapping[str, str]:
    declared = _declared(job)
    return declared.environment if declared is not None else {}


def _new(home: Home, asked: Asked) -> JobDir:
    """Made aside and renamed, so that no half-made job is ever seen."""
    try:
        home.jobs.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home.jobs, prefix=".new-") as aside:
            new = JobDir(Path(aside) / "job")
            new.path.mkdir()
            new.write_asked(asked)
            name = f"{asked.kind.replace('_', '-')}-{next_number(home.jobs):04d}"
            return JobDir(new.path.rename(home.jobs / name))
    except OSError as error:
        raise HomeError.not_written(home.jobs, error) from None
    except PydanticSerializationError:
        raise JobError(
            "a path that is no UTF-8 text cannot be given to a background job: rename the file or"
            " folder."
        ) from None


def _forget_old(home: Home) -> None:
    for job in job_dirs(home)[:-KEPT]:
        if job.end() is not None:
            shutil.rmtree(job.path, ignore_errors=True)


GRACE_SECONDS = 10.0  # from the wish to cancel to a kill
SETTLED_SECONDS = (
    2.0  # the time of a folder is coarse: what changes it again at once may leave it as it is
)
log = logging.getLogger("gan_runtime")


class JobSupervisor:
    """Called by one thread at a time.

    Everything it knows stands in the jobs' folders, so the next owner goes on.
    """

    def __init__(self, home: Home, clock: Callable[[], float] = time.monotonic) -> None:
        self._home, self._patience = home, Patience(clock)
        self._open: list[JobDir] = []  # without an end
        self._logged: dict[str, str] = {}  # job → the reason that was logged last

    def tick(self, busy: set[str]) -> set[str]:
        """`busy`: turns that others have, such as accelerators on which runs train.

        Returns the turns that jobs have now.
        """
        self._look_for_new()
        looks = [(job, look) for job in self._open if (look := job.look()) is not None]
        taken = {turn for _, look in looks if look.state == "running" and (turn := _turn(look))}
        for job, look in looks:
            try:
                taken |= self._act_on(job, look, busy | taken)
            except (GanRuntimeError, OSError) as error:
                self._complain(
                    job, error
                )  # such as a pipe in the place of its log: the other jobs go on
        self._open = [job for job in self._open if job.path.is_dir() and job.end() is None]
        return taken

    def _act_on(self, job: JobDir, look: JobLook, busy: set[str]) -> set[str]:
        """Returns the turn that the job has got, if any."""
        if look.end is not None:
            self._bury(job, look)
        elif look.state == "running" and job.stop_file.exists():
            self._end_by_force(job)
        elif look.state == "waiting" and (not _turn(look) or _turn(look) not in busy):
            start(job)
            return {_turn(look)} - {""}
        return set()

    def _complain(self, job: JobDir, error: Exception) -> None:
        """Into the log, once for each job and reason."""
        if self._logged.get(job.job_id) != str(error):
            self._logged[job.job_id] = str(error)
            log.warning("job %s is left as it is: %s", job.job_id, error)

    def _look_for_new(self) -> None:
        """Whoever asks for a job changes its folder's parent; ended jobs are not looked at
        again.
        """
        with contextlib.suppress(FileNotFoundError):
            changed_ns = self._home.jobs.stat().st_mtime_ns
            if self._patience.seconds("jobs", "", changed_ns) < SETTLED_SECONDS:
                self._open = [job for job in job_dirs(self._home) if job.end() is None]

    def _bury(self, job: JobDir, look: JobLook) -> None:
        """Writes down the end of a job that could not do so, once nothing half-made is left
        of it.
        """
        if look.end is None or job.end() is not None:
            return
        with contextlib.suppress(Timeout), FileLock(job.lock).acquire(blocking=False):
            job.clear(finished=False)
            job.write_end(look.end)

    def _end_by_force(self, job: JobDir) -> None:
        if self._patience.seconds("cancel", job.job_id, True) > GRACE_SECONDS:
            signal_group(job, signal.SIGKILL)


def _turn(look: JobLook) -> str:
    job = jobs().get(look.asked.kind)
    return job.turn if job else ""
