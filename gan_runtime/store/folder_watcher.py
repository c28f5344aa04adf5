"""Which folders of runs and jobs an owner looks at now, and the rows of jobs.

Runs that wait or train are looked at each time, ended ones when something tells of a change.

An ended run has nothing new but for a person's wish (resume, rename, delete) or a change made by
hand. The former announce themselves by the times of two folders (RunDir.announce); for the latter
every ended run is looked at once in a while.

A job's folder is small and says everything (jobs/folder.py), so its row is read as a whole: while
it waits or works at each look, and no more once its end is written. A row goes with its folder.
"""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Callable
from contextlib import suppress

from gan_runtime.base.deadlines import Patience
from gan_runtime.jobs import job_queue
from gan_runtime.jobs.folder import JobDir, JobSnapshot
from gan_runtime.records.home import Home
from gan_runtime.records.record import Row
from gan_runtime.store import ingest_batch
from gan_runtime.store.store import Store, is_trouble_of_the_store

ROUND_SECONDS = 60.0  # in which every ended run is looked at once
RESTLESS_SECONDS = (
    60.0  # after its last news: what a launcher adds, or a trainer that was taken for lost
)
# Times of folders come in steps, of 2 s in the coarsest file systems: two changes within one step
# look like one.
SETTLING_SECONDS = 2.5
ALWAYS = float("inf")

Clock = Callable[[], float]


class Watch:
    """Asked by one thread at a time. `clock`: seconds that nobody can set."""

    def __init__(self, home: Home, clock: Clock = time.monotonic) -> None:
        self._home, self._clock = home, clock
        self._changed_ns: int | None = None  # time of the folder of all runs
        self._unsettled_until = 0.0
        self.listings = 0  # how often all folders were listed
        self._folders: dict[str, int] = {}  # name → time of its last change
        self._restless: dict[str, float] = {}  # run id → until when it is looked at each time
        self._round: list[
            str
        ] = []  # those of this round, its beginning, and how many of them were looked at
        self._round_begin, self._round_done = -ALWAYS, 0

    def note(self, run_id: str, is_live: bool) -> None:
        """The run is in that state, as was just read."""
        self._restless[run_id] = ALWAYS if is_live else self._clock() + RESTLESS_SECONDS

    def rest(self, run_id: str) -> None:
        """The run is gone, or cannot be read as it is now."""
        self._restless.pop(run_id, None)

    def distrust(self) -> None:
        """What `due` gave last was not looked at to the end: the next time it gives everything."""
        self._folders, self._round_begin = {}, -ALWAYS

    def everything(self) -> set[str]:
        """The names of all folders that are to be runs; a round begins with it."""
        self._folders = self._listed()
        self._round, self._round_begin, self._round_done = sorted(self._folders), self._clock(), 0
        return set(self._folders)

    def due(self) -> set[str]:
        """The names of folders to look at now."""
        now, before = self._clock(), self._folders
        touched = self._new(before)
        if now - self._round_begin >= ROUND_SECONDS:
            left = set(self._round[self._round_done :])
            touched |= {
                name
                for name in self.everything()
                if name in left or before.get(name) != self._folders[name]
            }
        self._restless = {name: until for name, until in self._restless.items() if until > now}
        return touched | (self._restless.keys() & self._folders.keys()) | self._turn(now)

    @property
    def present(self) -> set[str]:
        """The folders that were there when last looked."""
        return set(self._folders)

    def _new(self, before: dict[str, int]) -> set[str]:
        """Folders that are new or announced a change. Either moves the time of the folder above."""
        now, changed_ns = self._clock(), self._runs_changed_ns()
        if changed_ns != self._changed_ns:
            self._changed_ns, self._unsettled_until = changed_ns, now + SETTLING_SECONDS
        if now >= self._unsettled_until:
            return set()
        self._folders = self._listed()
        return {name for name, changed in self._folders.items() if before.get(name) != changed}

    def _turn(self, now: float) -> set[str]:
        """The next few of the round, so many that it takes ROUND_SECONDS."""
        begin, share = self._round_done, (now - self._round_begin) / ROUND_SECONDS
        self._round_done = max(begin, math.ceil(share * len(self._round)))
        return set(self._round[begin : self._round_done]) & self._folders.keys()

    def _runs_changed_ns(self) -> int | None:
        with suppress(FileNotFoundError):
            return self._home.runs.stat().st_mtime_ns
        return None

    def _listed(self) -> dict[str, int]:
        self.listings += 1
        return folders_changed_ns(self._home)


def folders_changed_ns(home: Home) -> dict[str, int]:
    """Each folder that is to be a run, and the time of its last change."""
    changed_ns: dict[str, int] = {}
    with suppress(FileNotFoundError), os.scandir(home.runs) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # a link to nothing, or deleted meanwhile
                if not entry.name.startswith(".") and entry.is_dir():
                    changed_ns[entry.name] = entry.stat().st_mtime_ns
    return changed_ns


_ENDED_AT = 7  # column
log = logging.getLogger("gan_runtime")


class JobIntake:
    """Feeds one store from the jobs of one home. Called by one thread at a time."""

    def __init__(self, home: Home, store: Store, clock: Clock) -> None:
        self._home, self._store, self._patience = home, store, Patience(clock)
        self._rows: dict[str, Row] = {
            row[0]: row for row in store.rows("SELECT * FROM ingest.jobs")
        }
        self._open: list[JobDir] = []  # whose end is not known for good

    def catch_up(self) -> int:
        """Takes in how the jobs are now, and lets go of those whose folder is gone; returns
        how many rows changed.
        """
        gone: set[str] = set()
        if self._may_be_new():
            jobs = job_queue.job_dirs(self._home)
            gone = self._rows.keys() - {job.job_id for job in jobs}
            self._open = [job for job in jobs if self._is_open(job)]
        looks = [look for job in self._open if (look := job.snapshot()) is not None]
        news = [
            found for look in looks if (found := job_row(look)) != self._rows.get(look.job.job_id)
        ]
        self._write(news, gone)
        self._open = [job for job in self._open if job.path.is_dir() and self._is_open(job)]
        return len(news) + len(gone)

    def _may_be_new(self) -> bool:
        """Whoever asks for a job, or forgets an old one, changes the folder of all jobs."""
        changed_ns = self._home.jobs.stat().st_mtime_ns if self._home.jobs.is_dir() else 0
        return self._patience.seconds("jobs", "", changed_ns) < SETTLING_SECONDS

    def _is_open(self, job: JobDir) -> bool:
        """Until the row tells the end that is written: a look at a dead job tells of one
        before its owner has written it.
        """
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
        """Each job in a transaction of its own; the one that the table does not take is left
        out until it changes.
        """
        self._replace([], gone)
        for row in news:
            try:
                self._replace([row], set())
            except Exception as error:
                if is_trouble_of_the_store(error):
                    raise
                log.warning("job %s is set aside: %s", row[0], ingest_batch.reason_of(error))


def job_row(look: JobSnapshot) -> Row:
    """Of jobs.

    The run is the one that a job is about; the message that of its end, empty before.
    """
    asked, end = look.request, look.end
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
