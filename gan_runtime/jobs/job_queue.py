"""Requesting, starting, cancelling and listing jobs, and their supervision by the owner.

All state is in files, so any process can request a job: a page, the command line, or the owner. The
owner kills jobs that do not stop, writes the end of lost jobs, and starts jobs that wait for their
turn.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from pydantic_core import PydanticSerializationError

from gan_runtime.base import disk, framework_settings
from gan_runtime.base.errors import GanRuntimeError, HomeError, JobError, quoted
from gan_runtime.jobs.folder import End, JobDir, JobRequest, JobSnapshot
from gan_runtime.jobs.job import Job, as_document, job_named, jobs
from gan_runtime.records import processes, run_files
from gan_runtime.records.home import Home, is_run_name, next_number
from gan_runtime.records.states import StateTimer

WORKER = "gan_runtime.jobs.process"
MOST_ENDED = 100  # folders of ended jobs that are retained
MOST_QUICK = 20  # the same for jobs with a staying process, which a user can request every second
GRACE_SECONDS = 10.0  # from a cancel to the kill
# Modification times are coarse, so a second change can leave the time unchanged.
SETTLED_SECONDS = 2.0
log = logging.getLogger("gan_runtime")


def request(home: Home, name: str, options: Any, actor: str) -> JobDir:
    """Requests a new job if its declaration accepts the options.

    `options`: the job's option record, or its values by name.

    Raises:
        JobError: there is no such job, or an equal one is live.
        HomeError: as for `enqueue`. The job's `check` can raise others.
    """
    job = job_named(name)
    record = job.options(**options) if isinstance(options, Mapping) else options
    job.check(home, record)
    document = as_document(record)
    live = newest_live(home, job, document) if job.busy else None
    if live is not None:
        raise JobError(
            f"{job.busy.format(**document)} already by job {live.job.job_id}: wait for its end,"
            " or cancel it first."
        )
    return enqueue(home, name, document, actor)


def enqueue(home: Home, kind: str, options: dict[str, Any], actor: str) -> JobDir:
    """Creates a job. A job without a turn starts at once; the owner of the home starts the others.

    Raises:
        HomeError: the home cannot be written, or its disk is full; no file remains.
    """
    home.prepare()
    disk.require(home.path, disk.LEAST_BYTES, "a background job")
    job = _new(home, JobRequest(kind=kind, options=options, asker=actor))
    if not job_named(kind).turn:
        start(job)
    _delete_old(home)
    return job


def start(job: JobDir) -> None:
    """Starts the process of a job in a new session, so that closing the page, the dashboard or the
    terminal does not end it. If the job's kind has a staying process, that process takes the job.
    """
    declared = _declared(job)
    staying = _staying(job, declared)
    with contextlib.suppress(Timeout), contextlib.ExitStack() as locks:
        for folder in filter(None, (job, staying)):
            locks.enter_context(FileLock(folder.start_lock).acquire(blocking=False))
        if job.is_started or (staying is not None and staying.process() is not None):
            return
        with os.fdopen(run_files.appending(job.log), "ab") as output:
            child = subprocess.Popen(
                processes.command(WORKER, str(job.path)),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={
                    **processes.environment(framework_settings.clean_environment(os.environ)),
                    **(declared.environment if declared is not None else {}),
                },
                start_new_session=True,
            )
        job.write_process(
            child.pid
        )  # the child does so later; until then the job would appear to wait
        if staying is not None:
            staying.write_process(child.pid)


def _staying(job: JobDir, declared: Job | None) -> JobDir | None:
    """The folder with process.json and the start lock of a kind's staying process, at most one per
    home. None if processes of this kind do not stay.
    """
    if declared is None or not declared.stays_s:
        return None
    folder = job.path.parent / f".{declared.name}"
    folder.mkdir(exist_ok=True)
    return JobDir(folder)


def cancel(job: JobDir, actor: str) -> None:
    """Requests the end of a job; a second call changes nothing. The owner kills the job after
    `GRACE_SECONDS`.

    Raises:
        JobError: the job has already ended.
    """
    snapshot = job.snapshot()
    if snapshot is not None and not snapshot.is_live:
        raise JobError(
            f"job {job.job_id} is {snapshot.state} already: only a waiting or running job can be"
            " cancelled."
        )
    job.request_stop(actor)
    declared = _declared(job)
    signal_group(
        job, signal.SIGKILL if declared is not None and declared.killed_at_once else signal.SIGTERM
    )


def signal_group(job: JobDir, number: signal.Signals) -> None:
    """Signals the job's process and its children, if the process runs."""
    process = job.process()
    if process is not None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)


def snapshots(home: Home, name: str = "", /, **options: Any) -> list[JobSnapshot]:
    """All jobs, newest first; with arguments, the jobs of one name whose options have
    these values.
    """
    names = job_named(name).names if name else ()
    matching = [job for job in reversed(job_dirs(home)) if _matches(job.request(), names, options)]
    return [snapshot for job in matching if (snapshot := job.snapshot()) is not None]


def _matches(
    request: JobRequest | None, names: tuple[str, ...], options: Mapping[str, Any]
) -> bool:
    if request is None or (names and request.kind not in names):
        return False
    return all(request.options.get(option) == value for option, value in options.items())


def newest(
    home: Home, name: str, /, *, also_cancelled: bool = True, **options: Any
) -> JobSnapshot | None:
    """The newest job of this name whose options have these values; None before the first."""
    return next(
        (
            snapshot
            for snapshot in snapshots(home, name, **options)
            if also_cancelled or snapshot.state != "cancelled"
        ),
        None,
    )


def newest_live(home: Home, job: Job, options: Mapping[str, Any]) -> JobSnapshot | None:
    """The waiting or running job that equals a request with these options; None without one."""
    same = {name: options.get(name) for name in job.same}
    return next((live for live in snapshots(home, job.name, **same) if live.is_live), None)


def job_dirs(home: Home) -> list[JobDir]:
    """The folders of all jobs, oldest first."""
    try:
        paths = [path for path in home.jobs.iterdir() if is_run_name(path.name) and path.is_dir()]
    # There is no job yet, or the home's path can be no folder.
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [JobDir(path) for path in sorted(paths, key=lambda path: path.name.rpartition("-")[2])]


def job_dir(home: Home, job_id: str) -> JobDir:
    """The folder of a job. Raises JobError if it does not exist; the message lists the
    newest jobs.
    """
    jobs_by_id = {job.job_id: job for job in job_dirs(home)}
    if job_id not in jobs_by_id:
        newest_ids = ", ".join(list(jobs_by_id)[-8:])
        job_list = f"there are {newest_ids}" if newest_ids else "there are no jobs yet"
        raise JobError(f"job {quoted(job_id)} is not in {home.path}: {job_list}.")
    return jobs_by_id[job_id]


def _declared(job: JobDir) -> Job | None:
    """The declaration of a job; None if only another version of the program declares it."""
    request = job.request()
    return jobs().get(request.kind) if request is not None else None


def _new(home: Home, request: JobRequest) -> JobDir:
    """Creates the folder under a temporary name and renames it, so that no process sees an
    unfinished job.
    """
    try:
        home.jobs.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home.jobs, prefix=".new-") as scratch:
            job = JobDir(Path(scratch) / "job")
            job.path.mkdir()
            job.write_request(request)
            name = f"{request.kind.replace('_', '-')}-{next_number(home.jobs):04d}"
            return JobDir(job.path.rename(home.jobs / name))
    except OSError as error:
        raise HomeError.not_written(home.jobs, error) from None
    except PydanticSerializationError:
        raise JobError(
            "a background job takes only paths in UTF-8: rename the file or folder."
        ) from None


def _delete_old(home: Home) -> None:
    quick = {job.name for job in jobs().values() if job.stays_s}
    by_speed: dict[bool, list[JobDir]] = {True: [], False: []}
    for job in job_dirs(home):
        by_speed[job.job_id.rpartition("-")[0].replace("-", "_") in quick].append(job)
    for job in [*by_speed[True][:-MOST_QUICK], *by_speed[False][:-MOST_ENDED]]:
        if job.end() is not None:
            shutil.rmtree(job.path, ignore_errors=True)


class JobSupervisor:
    """Supervises the jobs of a home. Not thread-safe. The state is in the jobs' folders, so the
    next owner continues.
    """

    def __init__(self, home: Home, clock: Callable[[], float] = time.monotonic) -> None:
        self._home, self._timer = home, StateTimer(clock)
        self._open: list[JobDir] = []  # jobs without an end
        self._logged: dict[str, str] = {}  # job → the last logged reason

    def tick(self, busy: set[str]) -> set[str]:
        """Starts, kills and ends jobs as needed. `busy`: turns that are taken, such as accelerators
        with a training.

        Returns the turns that jobs now have.
        """
        self._find_new()
        live = [(job, snapshot) for job in self._open if (snapshot := job.snapshot()) is not None]
        claimed = {
            turn
            for _, snapshot in live
            if snapshot.state == "running" and (turn := _turn(snapshot))
        }
        for job, snapshot in live:
            try:
                claimed |= self._act_on(job, snapshot, busy | claimed)
            except (GanRuntimeError, OSError) as error:  # the other jobs continue
                self._complain(job, error)
        self._open = [job for job in self._open if job.path.is_dir() and job.end() is None]
        return claimed

    def _act_on(self, job: JobDir, snapshot: JobSnapshot, busy: set[str]) -> set[str]:
        """Acts on one job; returns the turn that it has taken, if any."""
        turn = _turn(snapshot)
        if snapshot.end is not None:
            self._write_end(job, snapshot.end)
        elif snapshot.state == "running" and job.stop_file.exists():
            if self._timer.seconds("cancel", job.job_id, True) > GRACE_SECONDS:
                signal_group(job, signal.SIGKILL)
        elif snapshot.state == "waiting" and (not turn or turn not in busy):
            start(job)
            return {turn} - {""}
        return set()

    def _complain(self, job: JobDir, error: Exception) -> None:
        """Logs an error, once for each job and reason."""
        if self._logged.get(job.job_id) != str(error):
            self._logged[job.job_id] = str(error)
            log.warning("job %s is skipped: %s", job.job_id, error)

    def _find_new(self) -> None:
        """Reads the folder of jobs only after it has changed, as each request changes it."""
        with contextlib.suppress(FileNotFoundError):
            changed_ns = self._home.jobs.stat().st_mtime_ns
            if self._timer.seconds("jobs", "", changed_ns) < SETTLED_SECONDS:
                self._open = [job for job in job_dirs(self._home) if job.end() is None]

    def _write_end(self, job: JobDir, end: End) -> None:
        """Deletes the unfinished files of a job whose process could not, then writes its end."""
        if job.end() is None:
            with contextlib.suppress(Timeout), FileLock(job.lock).acquire(blocking=False):
                job.clear(finished=False)
                job.write_end(end)


def _turn(snapshot: JobSnapshot) -> str:
    job = jobs().get(snapshot.request.kind)
    return job.turn if job else ""
