"""From the folders of background jobs to rows: one for each job that has a folder, as it is now.

A job's folder is small and says everything (jobs/folder.py), so its row is read as a whole: while it waits or works at
each look, and no more once its end is written. A row goes with its folder.
"""

from __future__ import annotations

import logging

from gan_runtime.base.deadlines import Patience
from gan_runtime.jobs import job_queue
from gan_runtime.jobs.folder import JobDir, JobLook
from gan_runtime.records.home import Home
from gan_runtime.records.record import Row
from gan_runtime.store import reasons
from gan_runtime.store.folder_watcher import SETTLING_SECONDS, Clock
from gan_runtime.store.store import Store, is_trouble_of_the_store

_ENDED_AT = 7  # column
log = logging.getLogger("gan_runtime")


class JobIntake:
    """Feeds one store from the jobs of one home. Called by one thread at a time."""

    def __init__(self, home: Home, store: Store, clock: Clock) -> None:
        self._home, self._store, self._patience = home, store, Patience(clock)
        self._rows: dict[str, Row] = {row[0]: row for row in store.rows("SELECT * FROM ingest.jobs")}
        self._open: list[JobDir] = []  # whose end is not known for good

    def catch_up(self) -> int:
        """Takes in how the jobs are now, and lets go of those whose folder is gone; returns how many rows changed."""
        gone: set[str] = set()
        if self._may_be_new():
            jobs = job_queue.job_dirs(self._home)
            gone = self._rows.keys() - {job.job_id for job in jobs}
            self._open = [job for job in jobs if self._is_open(job)]
        looks = [look for job in self._open if (look := job.look()) is not None]
        news = [found for look in looks if (found := row(look)) != self._rows.get(look.job.job_id)]
        self._write(news, gone)
        self._open = [job for job in self._open if job.path.is_dir() and self._is_open(job)]
        return len(news) + len(gone)

    def _may_be_new(self) -> bool:
        """Whoever asks for a job, or forgets an old one, changes the folder of all jobs."""
        changed_ns = self._home.jobs.stat().st_mtime_ns if self._home.jobs.is_dir() else 0
        return self._patience.seconds("jobs", "", changed_ns) < SETTLING_SECONDS

    def _is_open(self, job: JobDir) -> bool:
        """Until the row tells the end that is written: a look at a dead job tells of one before its owner has written it."""
        known, end = self._rows.get(job.job_id), job.end()
        return known is None or end is None or known[_ENDED_AT] != end.at

    def _write(self, news: list[Row], gone: set[str]) -> None:
        if not news and not gone:
            return
        try:
            self._replace(news, gone)
        except Exception as error:
            if is_trouble_of_the_store(error):
                raise
            self._without_the_bad_one(news, gone)
        self._rows = {job_id: row for job_id, row in self._rows.items() if job_id not in gone}
        self._rows |= {row[0]: row for row in news}

    def _replace(self, news: list[Row], gone: set[str]) -> None:
        with self._store.transaction() as writer:
            old = [*gone, *(row[0] for row in news)]
            writer.execute("DELETE FROM ingest.jobs WHERE list_contains(?, job_id)", [old])
            writer.append("jobs", news)

    def _without_the_bad_one(self, news: list[Row], gone: set[str]) -> None:
        """Each job in a transaction of its own; the one that the table does not take is left out until it changes."""
        self._replace([], gone)
        for row in news:
            try:
                self._replace([row], set())
            except Exception as error:
                if is_trouble_of_the_store(error):
                    raise
                log.warning("job %s is set aside: %s", row[0], reasons.in_words(error))


def row(look: JobLook) -> Row:
    """Of jobs. The run is the one that a job is about; the message that of its end, empty before."""
    asked, end = look.asked, look.end
    about = asked.options.get("run_id")
    ended = (end.at, end.reason) if end is not None else (None, "")
    return (
        look.job.job_id,
        asked.kind,
        look.state,
        asked.asker,
        about,
        asked.at,
        look.job.started_at(),
        *ended,
    )
