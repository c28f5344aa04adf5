"""Whether the data set that a waiting run needs is ready: the run waits for the job that prepares it."""

from __future__ import annotations

from dataclasses import dataclass

from gan_runtime.base.errors import JobError
from gan_runtime.jobs import data_jobs, job_queue
from gan_runtime.jobs.folder import JobLook
from gan_runtime.records.home import Home
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.reasons import Cause, Reason, cause
from gan_runtime.records.run_folder import RunDir
from gan_runtime.records.run_state import latest_status

TOLD_STEPS = 10  # of the way: each is a line in the run's journal


@dataclass(frozen=True)
class Awaited:
    """`news`: what the run's journal should say now; `failure`: why there will be no data."""

    is_ready: bool
    news: StatusChange | None = None
    failure: Cause | None = None


READY = Awaited(is_ready=True)


class AwaitedData:
    """Asked by the supervisor for each waiting run, at each tick; remembers what it has told."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._jobs: dict[tuple[str, int], str] = {}  # run and attempt → the job it waits for; empty: none
        self._told: dict[str, tuple[int, str]] = {}  # run → the newest share and sentence in its journal

    def by(self, run: RunDir, attempt: int) -> Awaited:
        """What the run waits for. Raises RunStateError as `latest_status`."""
        key = (run.run_id, attempt)
        if key not in self._jobs:
            self._jobs[key] = latest_status(run).waits_for
        if not self._jobs[key]:
            return READY
        try:
            look = job_queue.job_dir(self._home, self._jobs[key]).look()
        except JobError:
            look = None
        if (
            look is None or look.state == "finished"
        ):  # its folder may be forgotten: the trainer says whether the data is there
            return READY
        name = data_jobs.name_of(look.asked)
        if look.end is not None:
            end = {"state": look.end.state, "message": look.end.reason}
            return Awaited(False, failure=cause(Reason.DATA_NOT_PREPARED, data_set=name, **end))
        return Awaited(False, news=self._news(run, name, look))

    def _news(self, run: RunDir, name: str, look: JobLook) -> StatusChange | None:
        """A line at each tenth of the way."""
        tenth = int(look.progress.share * TOLD_STEPS)
        if self._told.setdefault(run.run_id, (0, name)) == (tenth, name):
            return None
        self._told[run.run_id] = (tenth, name)
        newest = latest_status(run)  # a person may have moved it in the queue
        return newest.because(
            cause(Reason.WAITS_FOR_DATA, data_set=name, percent=round(100 * tenth / TOLD_STEPS))
        )
