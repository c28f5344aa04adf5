"""The process of a background job, and the context of its work:

    python -m gan_runtime.jobs.process JOB_DIR

Its output goes to the job's log.txt. A cancel arrives as SIGTERM and as the file STOP.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from gan_runtime.base import disk, framework_settings
from gan_runtime.base.errors import GanRuntimeError
from gan_runtime.base.importing import loaded
from gan_runtime.jobs.folder import End, JobDir
from gan_runtime.jobs.job import Job, cancelled, jobs
from gan_runtime.records import processes, run_files
from gan_runtime.records.home import Home

SECONDS_BETWEEN = 0.3  # between two progress reports
POLL_SECONDS = 0.03  # between two checks of a staying process for its next job


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
    in_memory = declared.loads(home, options)
    idle_since = time.monotonic()
    while os.getppid() == parent and time.monotonic() - idle_since < declared.stays_s:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        waiting = first.waiting(declared.names, read)
        if not waiting:
            time.sleep(POLL_SECONDS)
            continue
        job, request = waiting[0]
        if declared.loads(home, request.options) != in_memory:
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
        work: Work = loaded(jobs()[request.kind].work)
        with disk.full_disk_as_home_error(job.work):
            result = work(task)
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


if __name__ == "__main__":
    # The module that others import: as __main__ this is a second copy.
    from gan_runtime.jobs import process

    with processes.scratch_folder() as scratch:
        framework_settings.use_private_keras_home(scratch)
        code = process.main(JobDir(Path(sys.argv[1])))
    sys.exit(code)
