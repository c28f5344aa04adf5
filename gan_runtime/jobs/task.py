"""What the code of a job is given: its options, a folder to work in, and where it tells how
far it is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from gan_runtime.jobs.folder import JobDir, Progress
from gan_runtime.records.home import Home

SECONDS_BETWEEN = 0.3  # two lines of progress
Clock = Callable[[], float]


class Cancelled(BaseException):
    """Someone asked the job to end.

    No Exception, so that no `except Exception` in a library swallows it.
    """


class Task:
    """`work` is on the disk of the home, so that a finished folder can be renamed out of it.

    `results` stays with the job.
    """

    def __init__(
        self, home: Home, job: JobDir, options: dict[str, Any], clock: Clock = time.monotonic
    ) -> None:
        self.home, self.options = home, options
        self.work, self.results = job.work, job.results
        self._job, self._clock = job, clock
        self._told_s = -SECONDS_BETWEEN
        self._protected = threading.Event()

    def progress(self, done: int, total: int, sentence: str) -> None:
        """Tells how far it is; may be called for each row.

        Raises:
            Cancelled: someone asked the job to end.
        """
        now_s = self._clock()
        if now_s - self._told_s < SECONDS_BETWEEN and done != total:
            return
        self._told_s = now_s
        if self._job.stop_file.exists() and not self._protected.is_set():
            raise Cancelled
        self._job.add_progress(Progress(done=done, total=total, sentence=sentence))

    def past_cancelling(self) -> None:
        """For the last moment, when what was made takes its place: from here on nobody can
        cancel.
        """
        self._protected.set()

    def signalled(self, *_: object) -> None:
        """The handler of SIGTERM. Raises Cancelled, unless it is too late."""
        if not self._protected.is_set():
            raise Cancelled


Work = Callable[[Task], dict[str, Any]]
