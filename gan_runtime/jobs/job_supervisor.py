"""What the owner of a home does for its jobs at each tick: buries the dead, ends those that do not stop, gives the turns."""

from __future__ import annotations

import contextlib
import logging
import signal
import time
from collections.abc import Callable

from filelock import FileLock, Timeout

from gan_runtime.base.deadlines import Patience
from gan_runtime.base.errors import GanRuntimeError
from gan_runtime.jobs import job_queue
from gan_runtime.jobs.folder import JobDir, JobLook
from gan_runtime.jobs.job import jobs
from gan_runtime.records.home import Home

GRACE_SECONDS = 10.0  # from the wish to cancel to a kill
SETTLED_SECONDS = 2.0  # the time of a folder is coarse: what changes it again at once may leave it as it is
log = logging.getLogger("gan_runtime")


class Keeper:
    """Called by one thread at a time. Everything it knows stands in the jobs' folders, so the next owner goes on."""

    def __init__(self, home: Home, clock: Callable[[], float] = time.monotonic) -> None:
        self._home, self._patience = home, Patience(clock)
        self._open: list[JobDir] = []  # without an end
        self._logged: dict[str, str] = {}  # job → the reason that was logged last

    def tick(self, busy: set[str]) -> set[str]:
        """`busy`: turns that others have, such as accelerators on which runs train. Returns the turns that jobs have now."""
        self._look_for_new()
        looks = [(job, look) for job in self._open if (look := job.look()) is not None]
        taken = {turn for _, look in looks if look.state == "running" and (turn := _turn(look))}
        for job, look in looks:
            try:
                taken |= self._act_on(job, look, busy | taken)
            except (GanRuntimeError, OSError) as error:
                self._complain(job, error)  # such as a pipe in the place of its log: the other jobs go on
        self._open = [job for job in self._open if job.path.is_dir() and job.end() is None]
        return taken

    def _act_on(self, job: JobDir, look: JobLook, busy: set[str]) -> set[str]:
        """Returns the turn that the job has got, if any."""
        if look.end is not None:
            self._bury(job, look)
        elif look.state == "running" and job.stop_file.exists():
            self._end_by_force(job)
        elif look.state == "waiting" and (not _turn(look) or _turn(look) not in busy):
            job_queue.start(job)
            return {_turn(look)} - {""}
        return set()

    def _complain(self, job: JobDir, error: Exception) -> None:
        """Into the log, once for each job and reason."""
        if self._logged.get(job.job_id) != str(error):
            self._logged[job.job_id] = str(error)
            log.warning("job %s is left as it is: %s", job.job_id, error)

    def _look_for_new(self) -> None:
        """Whoever asks for a job changes its folder's parent; ended jobs are not looked at again."""
        with contextlib.suppress(FileNotFoundError):
            changed_ns = self._home.jobs.stat().st_mtime_ns
            if self._patience.seconds("jobs", "", changed_ns) < SETTLED_SECONDS:
                self._open = [job for job in job_queue.job_dirs(self._home) if job.end() is None]

    def _bury(self, job: JobDir, look: JobLook) -> None:
        """Writes down the end of a job that could not do so, once nothing half-made is left of it."""
        if look.end is None or job.end() is not None:
            return
        with contextlib.suppress(Timeout), FileLock(job.lock).acquire(blocking=False):
            job.clear(finished=False)
            job.write_end(look.end)

    def _end_by_force(self, job: JobDir) -> None:
        if self._patience.seconds("cancel", job.job_id, True) > GRACE_SECONDS:
            job_queue.signal_group(job, signal.SIGKILL)


def _turn(look: JobLook) -> str:
    job = jobs().get(look.asked.kind)
    return job.turn if job else ""
