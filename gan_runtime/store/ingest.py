"""From journals to tables: reads what is new in each journal and commits rows and offset together.

Killed at any moment, it goes on without losing or doubling a row. A rebuild is the same with all
offsets at zero. A run that cannot be read is set aside by name, with the reason, and all others go
on.
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
from gan_runtime.store.folder_watcher import Clock, JobIntake, Watch
from gan_runtime.store.ingest_batch import OTHER_TABLES, Intake, NewestSteps, write_rows
from gan_runtime.store.store import Store, is_trouble_of_the_store, may_be_of_one_run

# of small runs that are committed together: a transaction takes longer than reading one of them
BATCH_ROWS = 200_000
BATCH_RUNS = 500
log = logging.getLogger("gan_runtime")


class Ingestor:
    """Feeds one store from the journals of one home. Called by one thread at a time."""

    def __init__(self, home: Home, store: Store, clock: Clock = time.monotonic) -> None:
        self._home, self._store, self._clock = home, store, clock
        self._reader = journal.reader_of(store.tables.kinds)
        self.recall()

    def recall(self) -> None:
        """Begins with what the tables say: at first, and again when the database was opened
        anew.
        """
        self._watch, self._jobs = (
            Watch(self._home, self._clock),
            JobIntake(self._home, self._store, self._clock),
        )
        self._offsets: dict[
            str, dict[str, int]
        ] = {}  # run id → journal → first byte not yet in the tables
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
        self._newest_steps: dict[str, NewestSteps] = {}  # of runs that are being read
        # run id → its journals when they were last read to their ends
        self._stamps: dict[str, dict[str, Stamp]] = {}
        self._aside: dict[str, str] = dict(rows("SELECT run_id, reason FROM ingest.set_aside"))  # type: ignore[arg-type]
        self._waiting: list[Intake] = []  # read, not yet committed
        self._listings = 0  # of the watch, when it was last asked which folders are gone
        for run_id, (_, state) in self._newest.items():
            if state not in ENDED:
                self._watch.note(run_id, is_live=True)

    def catch_up(self) -> int:
        """Takes in everything that the journals and jobs say by now, and removes the rows of runs
        whose folder is gone.

        Returns the number of records, jobs and removed runs; 0 means that there is no news.
        """
        return self._look(self._watch.everything()) + self.catch_up_jobs()

    def catch_up_news(self) -> int:
        """As `catch_up`, for an owner that asks several times a second: ended runs are looked at
        when they announce a change, and otherwise about once a minute.
        """
        return self._look(self._watch.due()) + self.catch_up_jobs()

    def catch_up_jobs(self) -> int:
        """As `catch_up`, for the background jobs."""
        return self._jobs.catch_up()

    def catch_up_run(self, run: RunDir) -> int:
        """As `catch_up`, for one run that has a folder.

        What vanishes meanwhile is left to the next look.
        """
        return self._look_at(run) + self._commit()

    def forget(self, run_id: str) -> None:
        """Removes every row of a run."""
        with self._store.transaction() as writer:
            for table in (*self._store.tables.by_name, *OTHER_TABLES):
                writer.execute(f"DELETE FROM ingest.{table} WHERE run_id = ?", [run_id])
        for known in (self._offsets, self._created, self._newest, self._newest_steps, self._stamps):
            known.pop(run_id, None)  # type: ignore[attr-defined]

    def _look(self, names: Iterable[str]) -> int:
        try:
            news = sum(self._let_go(name) for name in self._gone())
            for name in sorted(names):
                news += self._look_at(RunDir(self._home.runs / name))
                if (
                    len(self._waiting) >= BATCH_RUNS
                    or sum(intake.size for intake in self._waiting) >= BATCH_ROWS
                ):
                    news += self._commit()
            return news + self._commit()
        except BaseException:
            self._drop_waiting()
            self._watch.distrust()
            self._listings = 0
            raise

    def _gone(self) -> set[str]:
        if self._listings == self._watch.listings:
            return set()
        self._listings = self._watch.listings
        return (self._offsets.keys() | self._aside.keys()) - set(
            map(ingest_batch.printable, self._watch.present)
        )

    def _look_at(self, run: RunDir) -> int:
        """Reads what is new of one run, or sets it aside; returns how much was changed in the
        tables already.
        """
        try:
            if not is_run_name(run.run_id):
                return self._set_aside(run.run_id, "its folder has a name that no run can have", {})
            return self._read(run)
        except FileNotFoundError:  # deleted meanwhile
            return 0
        except Exception as error:
            if is_trouble_of_the_store(error):
                raise
            self._drop(run.run_id)
            return self._set_aside(run.run_id, ingest_batch.reason_of(error), {})

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
                return news  # its first line is being written
            if reason:
                return news + self._set_aside(run.run_id, reason, stamps)
        try:
            return news + self._read_journals(run, stamps)
        except JournalError as error:  # read again once it changes
            self._drop(run.run_id)
            return news + self._set_aside(run.run_id, ingest_batch.reason_of(error), stamps)

    def _read_journals(self, run: RunDir, stamps: dict[str, Stamp]) -> int:
        offsets = self._offsets.get(run.run_id, {})
        longer = [
            path
            for path in run.in_order(stamps)
            if stamps[path.name][1] > offsets.get(path.name, 0)
        ]
        if not longer:  # as each ended run is when an owner begins
            self._stamps[run.run_id] = stamps
            return 0
        news, intake = 0, self._intake(run)
        for path in longer:
            offset = self._offsets.get(run.run_id, {}).get(path.name, 0)
            for chunk in journal.chunks(path, offset, reader=self._reader):
                intake.take(path.name, chunk)
                if intake.size >= BATCH_ROWS:
                    self._waiting.append(intake)
                    news += self._commit()
                    if not self._offsets.get(run.run_id):
                        return (
                            news  # set aside: what follows would be stored without what was before
                        )
                    intake = self._intake(run)
        intake.stamps = stamps
        self._waiting.append(intake)
        return news

    def _intake(self, run: RunDir) -> Intake:
        is_new = not self._offsets.get(run.run_id)
        if run.run_id not in self._newest_steps:
            self._newest_steps[run.run_id] = (
                NewestSteps({}) if is_new else NewestSteps.stored(self._store, run.run_id)
            )
        steps, created_at = self._newest_steps[run.run_id], self._created.get(run.run_id)
        return Intake(run, self._store.tables, steps, is_new, created_at)

    def _is_replaced(self, run: RunDir, stamps: dict[str, Stamp]) -> bool:
        """Whether the rows come from other journals than those: the folder was made anew, or
        put back from a copy.
        """
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
        """Writes what was read; returns the number of records.

        A run that the tables do not take is set aside.
        """
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return 0
        try:
            self._write([intake for intake in waiting if intake.offsets])
        except BaseException as error:
            for intake in waiting:
                self._drop(intake.run.run_id)
            if not isinstance(error, Exception) or self._is_of_all(error):
                raise
            return self._without_the_bad_one(waiting)
        return sum(self._done(intake) for intake in waiting)

    def _without_the_bad_one(self, waiting: list[Intake]) -> int:
        """Each run in a transaction of its own, so that only the one is set aside that the
        tables do not take.
        """
        news = 0
        for intake in waiting:
            try:
                self._write([intake])
            except Exception as error:
                if self._is_of_all(error):
                    raise
                # For want of memory it is tried again with the next round, about once a minute.
                stamps = {} if may_be_of_one_run(error) else intake.stamps or {}
                news += self._set_aside(intake.run.run_id, ingest_batch.reason_of(error), stamps)
            else:
                news += self._done(intake)
        return news

    def _is_of_all(self, error: Exception) -> bool:
        """Whether no run can be stored just now."""
        is_of_one = may_be_of_one_run(error) and self._store.damage is None
        return is_trouble_of_the_store(error) and not is_of_one

    def _write(self, intakes: list[Intake]) -> None:
        if intakes:
            with self._store.transaction() as writer:
                # An attempt that starts again voids earlier rows, so these go before the new ones
                # come.
                for intake in intakes:
                    intake.write(writer)
                write_rows(writer, intakes)

    def _done(self, intake: Intake) -> int:
        """What was committed is known from now on."""
        run_id = intake.run.run_id
        if intake.offsets:
            self._offsets.setdefault(run_id, {}).update(intake.offsets)
        if intake.created_at is not None:
            self._created[run_id] = intake.created_at
        if intake.newest is not None:
            self._newest[run_id] = max(self._newest.get(run_id, intake.newest), intake.newest)
        if intake.stamps is None:
            return intake.count  # there is more of it
        if run_id not in self._newest:
            return intake.count + self._set_aside(
                run_id, "its journals contain no state", intake.stamps
            )
        self._stamps[run_id] = intake.stamps
        is_live = self._newest[run_id][1] not in ENDED
        if intake.count:
            self._watch.note(run_id, is_live)
        if not is_live:
            self._newest_steps.pop(run_id, None)
        return intake.count + self._take_back(run_id)

    def _set_aside(self, name: str, reason: str, stamps: dict[str, Stamp]) -> int:
        """Leaves a run out until its journals change. Returns 1 if that is news."""
        if name in self._offsets:
            self.forget(name)
        self._stamps[name] = stamps
        self._watch.rest(name)
        shown = ingest_batch.printable(name)
        if self._aside.get(shown) == reason:
            return 0
        log.warning("run %s is set aside: %s", shown, reason)
        with self._store.transaction() as writer:
            writer.execute("DELETE FROM ingest.set_aside WHERE run_id = ?", [shown])
            writer.append("set_aside", [(shown, reason)])
        self._aside[shown] = reason
        return 1

    def _take_back(self, name: str) -> int:
        """Ends being set aside. Returns 1 if it was."""
        shown = ingest_batch.printable(name)
        if self._aside.pop(shown, None) is None:
            return 0
        with self._store.transaction() as writer:
            writer.execute("DELETE FROM ingest.set_aside WHERE run_id = ?", [shown])
        return 1

    def _let_go(self, name: str) -> int:
        """Of a folder that is gone: removes all that is known of it."""
        if name in self._offsets:
            self.forget(name)
        self._watch.rest(name)
        self._take_back(name)
        return 1

    def _drop(self, run_id: str) -> None:
        """Forgets what was read but not committed."""
        self._newest_steps.pop(run_id, None)
        self._waiting = [intake for intake in self._waiting if intake.run.run_id != run_id]

    def _drop_waiting(self) -> None:
        for intake in list(self._waiting):
            self._drop(intake.run.run_id)


def store_of(home: Home, runs: list[RunDir] | None = None) -> Store:
    """A store in memory, for a process that does not own results.duckdb, with everything that
    the journals hold by now, or only those of `runs`. Touches no file of the home.
    """
    with disk.told_when_full(
        Path(tempfile.gettempdir())
    ):  # where DuckDB puts what does not fit into memory
        store = Store()
        ingestor = Ingestor(home, store)
        if runs is None:
            ingestor.catch_up()
            return store
        for run in runs:
            ingestor.catch_up_run(run)
        ingestor.catch_up_jobs()
        return store
