"""Ingests journals into tables: reads new lines of each journal, and commits rows and offset
together.

After a crash at any moment no row is lost or duplicated. A rebuild does the same with all offsets
at zero. An unreadable run is quarantined with the reason, without affecting other runs.
"""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from gan_runtime.base import disk
from gan_runtime.base.errors import JournalError
from gan_runtime.records import journal
from gan_runtime.records.home import Home, is_run_name
from gan_runtime.records.journal import ENDED
from gan_runtime.records.run_folder import RunDir, Stamp
from gan_runtime.store import ingest_batch
from gan_runtime.store.folder_watcher import Clock, FolderWatcher, JobIngestor
from gan_runtime.store.ingest_batch import OTHER_TABLES, IngestBatch, NewestSteps, write_rows
from gan_runtime.store.store import Store, is_store_error, may_be_of_one_run

# Small runs are committed together, since a transaction takes longer than reading a small run.
BATCH_ROWS = 200_000
BATCH_RUNS = 500
log = logging.getLogger("gan_runtime")


class Ingestor:
    """Reads the journals of a home into the database. Not thread-safe."""

    def __init__(self, home: Home, store: Store, clock: Clock = time.monotonic) -> None:
        self._home, self._store, self._clock = home, store, clock
        self._reader = journal.reader_of(store.tables.kinds)
        self.recall()

    def recall(self) -> None:
        """Starts from the tables: at first, and when the database was reopened."""
        self._watcher = FolderWatcher(self._home, self._clock)
        self._jobs = JobIngestor(self._home, self._store, self._clock)
        # run id → journal → first byte that is not in the tables
        self._offsets: dict[str, dict[str, int]] = {}
        rows = self._store.rows
        for run_id, name, next_byte in rows(
            "SELECT run_id, journal, next_byte FROM ingest.offsets"
        ):
            self._offsets.setdefault(run_id, {})[name] = next_byte
        self._created: dict[str, datetime] = dict(
            rows("SELECT run_id, created_at FROM ingest.created")
        )  # type: ignore[arg-type]
        self._newest: dict[str, tuple[journal.Standing, journal.Status]] = {}
        for run_id, status, *standing in rows(
            "SELECT run_id, status, attempt, stage, source, place FROM ingest.newest"
        ):
            self._newest[run_id] = ((standing[0], standing[1], standing[2], standing[3]), status)
        self._newest_steps: dict[str, NewestSteps] = {}  # of live runs
        # run id → its journals when they were last read to the end
        self._stamps: dict[str, dict[str, Stamp]] = {}
        self._quarantined: dict[str, str] = dict(
            rows("SELECT run_id, reason FROM ingest.set_aside")
        )  # type: ignore[arg-type]
        self._waiting: list[IngestBatch] = []  # read but not yet committed
        self._listings = 0  # listings of the watcher at the last check for deleted folders
        for run_id, (_, state) in self._newest.items():
            if state not in ENDED:
                self._watcher.note(run_id, is_live=True)

    def catch_up(self) -> int:
        """Stores everything that is new in journals and jobs, and removes the rows of deleted runs.

        Returns the number of records, jobs and removed runs.
        """
        return self._read_all(self._watcher.everything()) + self.catch_up_jobs()

    def catch_up_news(self, at_once: bool = False) -> int:
        """As `catch_up`, for several calls per second: reads an ended run when it announces a
        change, else once a minute, and a training one twice a second. `at_once`: reads all live
        ones now.
        """
        if at_once:
            self._watcher.hurry()
        return self._read_all(self._watcher.to_read()) + self.catch_up_jobs()

    def catch_up_jobs(self) -> int:
        """As `catch_up`, for background jobs."""
        return self._jobs.catch_up()

    def catch_up_run(self, run: RunDir) -> int:
        """As `catch_up`, for one run."""
        return self._read_news(run) + self._commit()

    def forget(self, run_id: str) -> None:
        """Removes every row of a run."""
        with self._store.transaction() as writer:
            for table in (*self._store.tables.by_name, *OTHER_TABLES):
                writer.execute(f"DELETE FROM ingest.{table} WHERE run_id = ?", [run_id])
        for state in (self._offsets, self._created, self._newest, self._newest_steps, self._stamps):
            state.pop(run_id, None)  # type: ignore[attr-defined]

    def _read_all(self, names: Iterable[str]) -> int:
        try:
            news = sum(self._remove(name) for name in self._deleted())
            for name in sorted(names):
                news += self._read_news(RunDir(self._home.runs / name))
                if (
                    len(self._waiting) >= BATCH_RUNS
                    or sum(batch.size for batch in self._waiting) >= BATCH_ROWS
                ):
                    news += self._commit()
            return news + self._commit()
        except BaseException:
            self._drop_waiting()
            self._watcher.reset()
            self._listings = 0
            raise

    def _deleted(self) -> set[str]:
        if self._listings == self._watcher.listings:
            return set()
        self._listings = self._watcher.listings
        return (self._offsets.keys() | self._quarantined.keys()) - set(
            map(ingest_batch.printable, self._watcher.present)
        )

    def _read_news(self, run: RunDir) -> int:
        """Reads the new lines of one run, or quarantines it; returns the number of committed
        records.
        """
        try:
            if not is_run_name(run.run_id):
                return self._quarantine(
                    run.run_id, "its folder has a name that no run can have", {}
                )
            return self._read(run)
        except FileNotFoundError:  # just deleted
            return 0
        except Exception as error:
            if is_store_error(error):
                raise
            self._drop(run.run_id)
            return self._quarantine(run.run_id, ingest_batch.reason_of(error), {})

    def _read(self, run: RunDir) -> int:
        stamps = run.journal_stats()
        if stamps == self._stamps.get(run.run_id, {}):
            return 0
        news = 0
        if self._is_replaced(run, stamps):
            self.forget(run.run_id)
            news += 1
        if not self._offsets.get(run.run_id):
            reason = ingest_batch.unreadable(run, stamps)
            if reason is None:
                return news  # the first line is unfinished
            if reason:
                return news + self._quarantine(run.run_id, reason, stamps)
        try:
            return news + self._read_journals(run, stamps)
        except JournalError as error:
            self._drop(run.run_id)
            return news + self._quarantine(run.run_id, ingest_batch.reason_of(error), stamps)

    def _read_journals(self, run: RunDir, stamps: dict[str, Stamp]) -> int:
        offsets = self._offsets.get(run.run_id, {})
        longer = [
            path
            for path in run.in_order(stamps)
            if stamps[path.name][1] > offsets.get(path.name, 0)
        ]
        if not longer:  # true of each ended run after a change of owner
            self._stamps[run.run_id] = stamps
            return 0
        news, batch = 0, self._batch(run)
        for path in longer:
            offset = self._offsets.get(run.run_id, {}).get(path.name, 0)
            for chunk in journal.chunks(path, offset, reader=self._reader):
                batch.take(path.name, chunk)
                if batch.size >= BATCH_ROWS:
                    self._waiting.append(batch)
                    news += self._commit()
                    if not self._offsets.get(run.run_id):
                        return news  # quarantined
                    batch = self._batch(run)
        batch.stamps = stamps
        self._waiting.append(batch)
        return news

    def _batch(self, run: RunDir) -> IngestBatch:
        is_new = not self._offsets.get(run.run_id)
        if run.run_id not in self._newest_steps:
            self._newest_steps[run.run_id] = (
                NewestSteps({}) if is_new else NewestSteps.stored(self._store, run.run_id)
            )
        steps, created_at = self._newest_steps[run.run_id], self._created.get(run.run_id)
        return IngestBatch(run, self._store.tables, steps, is_new, created_at)

    def _is_replaced(self, run: RunDir, stamps: dict[str, Stamp]) -> bool:
        """Whether the rows come from other journals: the folder was replaced or restored."""
        offsets, supervisor = self._offsets.get(run.run_id, {}), run.supervisor_journal.name
        if any(name not in stamps or stamps[name][1] < offset for name, offset in offsets.items()):
            return True
        if supervisor not in offsets or stamps[supervisor] == self._stamps.get(run.run_id, {}).get(
            supervisor
        ):
            return False
        first = journal.first(run.supervisor_journal)
        return not isinstance(first, journal.Created) or first.at != self._created.get(run.run_id)

    def _commit(self) -> int:
        """Commits what was read; returns the number of records. Quarantines a run that fails."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return 0
        try:
            self._write([batch for batch in waiting if batch.offsets])
        except BaseException as error:
            for batch in waiting:
                self._drop(batch.run.run_id)
            if not isinstance(error, Exception) or self._is_of_all(error):
                raise
            return self._write_each(waiting)
        return sum(self._done(batch) for batch in waiting)

    def _write_each(self, waiting: list[IngestBatch]) -> int:
        """Writes each run in a separate transaction, to quarantine only a run that fails."""
        news = 0
        for batch in waiting:
            try:
                self._write([batch])
            except Exception as error:
                if self._is_of_all(error):
                    raise
                # Out of memory, it is tried again in the next round, once a minute.
                stamps = {} if may_be_of_one_run(error) else batch.stamps or {}
                news += self._quarantine(batch.run.run_id, ingest_batch.reason_of(error), stamps)
            else:
                news += self._done(batch)
        return news

    def _is_of_all(self, error: Exception) -> bool:
        """Whether no run can be stored now."""
        is_of_one = may_be_of_one_run(error) and self._store.damage is None
        return is_store_error(error) and not is_of_one

    def _write(self, batches: list[IngestBatch]) -> None:
        if batches:
            with self._store.transaction() as writer:
                # A new attempt voids earlier rows, which are removed before the new ones are added.
                for batch in batches:
                    batch.write(writer)
                write_rows(writer, batches)
                for batch in batches:
                    batch.write_blocks(writer)

    def _done(self, batch: IngestBatch) -> int:
        """Updates the state after a commit."""
        run_id = batch.run.run_id
        if batch.offsets:
            self._offsets.setdefault(run_id, {}).update(batch.offsets)
        if batch.created_at is not None:
            self._created[run_id] = batch.created_at
        if batch.newest is not None:
            self._newest[run_id] = max(self._newest.get(run_id, batch.newest), batch.newest)
        if batch.stamps is None:
            return batch.count  # more follows
        if run_id not in self._newest:
            return batch.count + self._quarantine(
                run_id, "its journals contain no state", batch.stamps
            )
        self._stamps[run_id] = batch.stamps
        state = self._newest[run_id][1]
        is_live = state not in ENDED
        if batch.count:
            self._watcher.note(run_id, is_live, is_training=state == "running")
        if not is_live:
            self._newest_steps.pop(run_id, None)
        return batch.count + self._end_quarantine(run_id)

    def _quarantine(self, name: str, reason: str, stamps: dict[str, Stamp]) -> int:
        """Skips a run until its journals change. Returns 1 if that is news."""
        if name in self._offsets:
            self.forget(name)
        self._stamps[name] = stamps
        self._watcher.forget(name)
        text = ingest_batch.printable(name)
        if self._quarantined.get(text) == reason:
            return 0
        log.warning("run %s is quarantined: %s", text, reason)
        with self._store.transaction() as writer:
            writer.execute("DELETE FROM ingest.set_aside WHERE run_id = ?", [text])
            writer.append("set_aside", [(text, reason)])
        self._quarantined[text] = reason
        return 1

    def _end_quarantine(self, name: str) -> int:
        """Returns 1 if the run was quarantined."""
        text = ingest_batch.printable(name)
        if self._quarantined.pop(text, None) is None:
            return 0
        with self._store.transaction() as writer:
            writer.execute("DELETE FROM ingest.set_aside WHERE run_id = ?", [text])
        return 1

    def _remove(self, name: str) -> int:
        """Removes the rows and the state of a deleted folder."""
        if name in self._offsets:
            self.forget(name)
        self._watcher.forget(name)
        self._end_quarantine(name)
        return 1

    def _drop(self, run_id: str) -> None:
        """Drops the batches of a run that are not committed."""
        self._newest_steps.pop(run_id, None)
        self._waiting = [batch for batch in self._waiting if batch.run.run_id != run_id]

    def _drop_waiting(self) -> None:
        for batch in list(self._waiting):
            self._drop(batch.run.run_id)


def store_of(home: Home, runs: list[RunDir] | None = None) -> Store:
    """A database in memory with the contents of all journals, or of those of `runs`. For processes
    that do not own results.duckdb; writes no file of the home.
    """
    with disk.full_disk_as_home_error(Path(tempfile.gettempdir())):  # of DuckDB's temporary files
        store = Store()
        ingestor = Ingestor(home, store)
        if runs is None:
            ingestor.catch_up()
            return store
        for run in runs:
            ingestor.catch_up_run(run)
        ingestor.catch_up_jobs()
        return store
