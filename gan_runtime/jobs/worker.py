"""Process entry of a job: job.json → the work of its declaration → end.json.

    python -m gan_runtime.jobs.worker JOB_DIR

Its output goes to the job's log.txt. A cancel arrives as SIGTERM and as the file STOP.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import tempfile
import traceback
from pathlib import Path

from filelock import FileLock, Timeout

from gan_runtime.base import disk, framework_settings
from gan_runtime.base.errors import GanRuntimeError
from gan_runtime.jobs.folder import End, JobDir
from gan_runtime.jobs.job import Cancelled, Task, Work, cancelled, jobs
from gan_runtime.records import processes
from gan_runtime.records.home import Home


def main(job: JobDir) -> int:
    """Runs one job and writes its end; returns the exit code: 0 finished or cancelled, else 1."""
    try:
        with FileLock(job.lock).acquire(blocking=False):
            if job.end() is not None:
                return 1
            end = _run(job)
            # Before the end is written: no reader of an ended job finds half-made files.
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
            result = _work(jobs()[request.kind].work)(task)
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
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # its end is being written


def _work(entry: str) -> Work:
    module, _, name = entry.partition(":")
    work: Work = getattr(importlib.import_module(module), name)
    return work


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix=f"{processes.SCRATCH_PREFIX}{os.getpid()}-") as scratch:
        framework_settings.use_private_keras_home(Path(scratch))
        code = main(JobDir(Path(sys.argv[1])))
    sys.exit(code)
