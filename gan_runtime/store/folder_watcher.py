"""Which folders of runs and jobs to read now, and the rows of jobs.

Waiting runs are read at each tick, and a training one at most each TRAINING_SECONDS, since each
commit costs as much as many rows. An ended run changes by a command (resume, rename,
delete), which updates the times of two folders (RunDir.announce), or by hand, for which each ended
run is checked once a minute. A job is read at each tick until its end is written.
"""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Callable
from contextlib import suppress

from gan_runtime.jobs import job_queue
from gan_runtime.jobs.folder import JobDir, JobSnapshot
from gan_runtime.records.home import Home
from gan_runtime.records.record import Row
from gan_runtime.records.states import StateTimer
from gan_runtime.store import ingest_batch
from gan_runtime.store.store import Store, is_store_error

ROUND_SECONDS = 60.0  # interval in which every ended run is checked once
TRAINING_SECONDS = 0.5
RECENT_SECONDS = 60.0  # during which an ended run is read at each tick after its last change
# Modification times have steps of up to 2 s, so two changes can have the same time.
SETTLING_SECONDS = 2.5
ALWAYS = float("inf")

Clock = Callable[[], float]


class FolderWatcher:
    """Selects the run folders to read. Not thread-safe. `clock`: monotonic seconds."""

    def __init__(self, home: Home, clock: Clock = time.monotonic) -> None:
        self._home, self._clock = home, clock
        self._changed_ns: int | None = None  # modification time of runs/
        self._unsettled_until = 0.0
        self.listings = 0  # number of times all folders were listed
        self._folders: dict[str, int] = {}  # name → modification time
        self._active_until: dict[str, float] = {}  # run id → until when it is read at each tick
        self._rests_until: dict[str, float] = {}  # run id → until when it is not read
        self._round: list[str] = []  # folders of this round
        # Start of the round, and number of folders done.
        self._round_begin, self._round_done = -ALWAYS, 0

    def note(self, run_id: str, is_live: bool, is_training: bool = False) -> None:
        """Notes the state of a run whose news were just stored."""
        now = self._clock()
        self._active_until[run_id] = ALWAYS if is_live else now + RECENT_SECONDS
        self._rests_until[run_id] = now + TRAINING_SECONDS if is_training else now

    def forget(self, run_id: str) -> None:
        """Notes that the run is deleted, or cannot be read until it changes."""
        self._active_until.pop(run_id, None)
        self._rests_until.pop(run_id, None)

    def hurry(self) -> None:
        """The next call of `to_read` gives every live run."""
        self._rests_until = {}

    def reset(self) -> None:
        """The next call of `to_read` gives everything, as the last result was not processed."""
        self._folders, self._round_begin = {}, -ALWAYS

    def everything(self) -> set[str]:
        """The names of all folders of runs; starts a round."""
        self._folders = self._listing()
        self._round, self._round_begin, self._round_done = sorted(self._folders), self._clock(), 0
        return set(self._folders)

    def to_read(self) -> set[str]:
        """The names of folders to read now."""
        now, before = self._clock(), self._folders
        touched = self._new(before)
        if now - self._round_begin >= ROUND_SECONDS:
            unread = set(self._round[self._round_done :])
            touched |= {
                name
                for name in self.everything()
                if name in unread or before.get(name) != self._folders[name]
            }
        self._active_until = {
            name: until for name, until in self._active_until.items() if until > now
        }
        self._rests_until = {name: end for name, end in self._rests_until.items() if end > now}
        active = self._active_until.keys() & self._folders.keys()
        return touched | (active - self._rests_until.keys()) | self._turn(now)

    @property
    def present(self) -> set[str]:
        """The folders of the last listing."""
        return set(self._folders)

    def _new(self, before: dict[str, int]) -> set[str]:
        """New folders and announced changes, both of which change the time of runs/."""
        now, changed_ns = self._clock(), self._runs_changed_ns()
        if changed_ns != self._changed_ns:
            self._changed_ns, self._unsettled_until = changed_ns, now + SETTLING_SECONDS
        if now >= self._unsettled_until:
            return set()
        self._folders = self._listing()
        return {name for name, changed in self._folders.items() if before.get(name) != changed}

    def _turn(self, now: float) -> set[str]:
        """The next folders of the round, so that it takes ROUND_SECONDS."""
        begin, share = self._round_done, (now - self._round_begin) / ROUND_SECONDS
        self._round_done = max(begin, math.ceil(share * len(self._round)))
        return set(self._round[begin : self._round_done]) & self._folders.keys()

    def _runs_changed_ns(self) -> int | None:
        with suppress(FileNotFoundError):
            return self._home.runs.stat().st_mtime_ns
        return None

    def _listing(self) -> dict[str, int]:
        self.listings += 1
        return folders_changed_ns(self._home)


def folders_changed_ns(home: Home) -> dict[str, int]:
    """The modification time of each folder of a run."""
    changed_ns: dict[str, int] = {}
    with suppress(FileNotFoundError), os.scandir(home.runs) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # a broken link, or just deleted
                if not entry.name.startswith(".") and entry.is_dir():
                    changed_ns[entry.name] = entry.stat().st_mtime_ns
    return changed_ns


_ENDED_AT = 7  # column
log = logging.getLogger("gan_runtime")


class JobIngestor:
    """Reads the background jobs of a home into the database. Not thread-safe."""

    def __init__(self, home: Home, store: Store, clock: Clock) -> None:
        self._home, self._store, self._timer = home, store, StateTimer(clock)
        self._rows: dict[str, Row] = {
            row[0]: row for row in store.rows("SELECT * FROM ingest.jobs")
        }
        self._open: list[JobDir] = []  # whose end is not stored yet

    def catch_up(self) -> int:
        """Stores the current state of the jobs; returns how many rows changed."""
        deleted: set[str] = set()
        if self._may_be_new():
            jobs = job_queue.job_dirs(self._home)
            deleted = self._rows.keys() - {job.job_id for job in jobs}
            self._open = [job for job in jobs if self._is_open(job)]
        snapshots = [job.snapshot() for job in self._open]
        rows = [job_row(snapshot) for snapshot in snapshots if snapshot is not None]
        news = [row for row in rows if row != self._rows.get(row[0])]
        self._write(news, deleted)
        self._open = [job for job in self._open if job.path.is_dir() and self._is_open(job)]
        return len(news) + len(deleted)

    def _may_be_new(self) -> bool:
        """A new or deleted job changes the time of jobs/."""
        changed_ns = self._home.jobs.stat().st_mtime_ns if self._home.jobs.is_dir() else 0
        return self._timer.seconds("jobs", "", changed_ns) < SETTLING_SECONDS

    def _is_open(self, job: JobDir) -> bool:
        """Whether the row of a job still lacks its written end. The end of a lost job is derived
        before it is written.
        """
        row, end = self._rows.get(job.job_id), job.end()
        return row is None or end is None or row[_ENDED_AT] != end.at

    def _write(self, news: list[Row], deleted: set[str]) -> None:
        if not news and not deleted:
            return
        try:
            self._replace(news, deleted)
        except Exception as error:
            if is_store_error(error):
                raise
            self._write_each(news, deleted)
        self._rows = {job_id: row for job_id, row in self._rows.items() if job_id not in deleted}
        self._rows |= {row[0]: row for row in news}

    def _replace(self, news: list[Row], deleted: set[str]) -> None:
        with self._store.transaction() as writer:
            old = [*deleted, *(row[0] for row in news)]
            writer.execute("DELETE FROM ingest.jobs WHERE list_contains(?, job_id)", [old])
            writer.append("jobs", news)

    def _write_each(self, news: list[Row], deleted: set[str]) -> None:
        """Each job in its own transaction; a row that the table does not accept is skipped."""
        self._replace([], deleted)
        for row in news:
            try:
                self._replace([row], set())
            except Exception as error:
                if is_store_error(error):
                    raise
                log.warning("skipping job %s: %s", row[0], ingest_batch.reason_of(error))


def job_row(snapshot: JobSnapshot) -> Row:
    """The row of a job: its run, and the message of its end, or ""."""
    request, end = snapshot.request, snapshot.end
    about = request.options.get("run_id")
    ended = (end.at, end.reason) if end is not None else (None, "")
    return (
        snapshot.job.job_id,
        request.kind,
        snapshot.state,
        request.asker,
        about,
        request.at,
        snapshot.job.started_at(),
        *ended,
    )
