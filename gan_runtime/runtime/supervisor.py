"""Starts waiting runs, one per accelerator at a time, stops them, and tells the truth about those that died.

Everything it knows stands in files and in the store, so a new supervisor takes over where a killed one left off:
trainers are processes of their own and go on meanwhile.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from gan_runtime.errors import GanRuntimeError
from gan_runtime.home import Home
from gan_runtime.jobs.keeper import Keeper
from gan_runtime.patience import Patience
from gan_runtime.records import journal
from gan_runtime.records.journal import ACTIVE, StatusChange
from gan_runtime.records.rundir import RunDir
from gan_runtime.runtime import leftovers
from gan_runtime.runtime.awaited import AwaitedData
from gan_runtime.runtime.starters import Attempt, Starter
from gan_runtime.runtime.starters.local import LocalStarter
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store
from gan_runtime.store.watch import Clock

GRACE_SECONDS = 60.0  # a stop ends at the next step boundary; one call of a large model takes seconds


@dataclass(frozen=True)
class _Live:
    """A run that waits or trains."""

    run: RunDir
    status: str
    attempt: int
    accelerator: str

    @property
    def as_attempt(self) -> Attempt:
        """For its starter."""
        return Attempt(self.run, self.attempt, self.accelerator)


class Supervisor:
    """Acts once per `tick`; called by one thread at a time, in the process that owns the store."""

    def __init__(
        self,
        home: Home,
        store: Store,
        ingestor: Ingestor,
        grace_seconds: float = GRACE_SECONDS,
        clock: Clock = time.monotonic,
    ) -> None:
        self._home, self._store, self._ingestor, self._grace_seconds = home, store, ingestor, grace_seconds
        self._starter: Starter = LocalStarter(Patience(clock))
        self._awaited = AwaitedData(home)
        self._keeper = Keeper(home, clock)
        self._turns_of_jobs: set[str] = set()
        self._known = self._live()  # asked again only after news, so that waiting costs next to nothing
        self._failed = False  # the last tick: its news may have arrived without being acted on

    def tick(self) -> None:
        """Takes in the journals, then acts on what they say."""
        failed_before, self._failed = self._failed, True
        self._act(failed_before)
        self._failed = False

    def _act(self, look_again: bool) -> None:
        # Who is dead is asked before the journals are read: a final event written meanwhile is then never missed.
        gone = {
            live.run.run_id
            for live in self._known
            if live.status in ACTIVE and not self._starter.alive(live.as_attempt)
        }
        if self._ingestor.catch_up_news() or gone or look_again:
            self._known = self._live()
        busy, acted, failed = self._held() | self._turns_of_jobs, False, None
        for live in self._known:
            try:
                acted |= self._act_on(live, busy, live.run.run_id in gone)
            except (
                GanRuntimeError,
                OSError,
            ) as error:  # such as a folder that cannot be written; the other runs go on
                failed = failed or error
        try:
            self._turns_of_jobs = self._keeper.tick(busy)
        except (GanRuntimeError, OSError) as error:
            failed = failed or error
        if acted:
            self._ingestor.catch_up_news()
            self._known = self._live()
        if failed is not None:
            raise failed

    def _act_on(self, live: _Live, busy: set[str], is_gone: bool) -> bool:
        """What has to be done for one run; adds its accelerator to the busy ones. Returns whether its journal has news."""
        if live.status == "queued":
            return self._act_on_waiting(live, busy)
        if is_gone:
            self._bury(live)
            return True
        busy.add(live.accelerator)
        if live.run.stop_file.exists():
            self._starter.stop(live.as_attempt, self._grace_seconds)
        return False

    def _act_on_waiting(self, live: _Live, busy: set[str]) -> bool:
        """A run whose data set is still being prepared waits for it and holds up nobody."""
        if live.run.stop_file.exists():
            self._note(live, "stopped", "taken from the queue before it started")
            return True
        awaited = self._awaited.by(live.run, live.attempt)
        if awaited.failure:
            self._note(live, "failed", awaited.failure)
        elif awaited.news is not None:
            journal.append(live.run.supervisor_journal, live.attempt, awaited.news)
        elif not awaited.is_ready or live.accelerator in busy:
            return False
        else:
            self._start(live)
            busy.add(live.accelerator)
        return True

    def _live(self) -> list[_Live]:
        """Training runs first, then the queue in its order."""
        rows = self._store.rows(
            "SELECT run_id, status, attempt, accelerator FROM runs_live ORDER BY status = 'queued', queue_rank, run_id"
        )
        return [
            _Live(RunDir(self._home.runs / run_id), status, attempt, accelerator)
            for run_id, status, attempt, accelerator in rows
        ]

    def _held(self) -> set[str]:
        """Accelerators of trainers that have not quite ended, also after their final event."""
        return self._starter.held(live.run.run_id for live in self._known)

    def _start(self, live: _Live) -> None:
        self._note(live, "starting", f"starting a trainer on {live.accelerator}")
        self._starter.start(live.as_attempt)

    def _bury(self, live: _Live) -> None:
        """The process is gone and has left no final event."""
        known = self._starter.bury(live.as_attempt)
        how = f" ({known})" if known else ""
        leftovers.of_run(live.run)
        goes_on = "resume goes on from its last checkpoint"
        if live.run.stop_file.exists():
            self._note(live, "stopped", f"the trainer ended without saving{how}; {goes_on}")
        else:
            self._note(live, "lost", f"the trainer process is gone without a word{how}; {goes_on}")

    def _note(self, live: _Live, status: journal.Status, reason: str) -> None:
        journal.append(live.run.supervisor_journal, live.attempt, StatusChange(status=status, reason=reason))
