"""Starts waiting runs on free devices, stops runs on request, and notes how those ended whose
trainer did not say so.

Everything it knows is in files and in the store, so a new supervisor takes over where a killed one
left off: trainers are processes of their own and go on meanwhile.
"""

from __future__ import annotations

import time

from gan_runtime import device_locks
from gan_runtime.base.deadlines import Patience
from gan_runtime.base.errors import GanRuntimeError
from gan_runtime.device_locks import Claim
from gan_runtime.jobs.job_queue import JobSupervisor
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.journal import ACTIVE, StatusChange
from gan_runtime.records.reasons import Cause, Reason, cause
from gan_runtime.records.run_folder import RunDir
from gan_runtime.records.run_state import latest_status
from gan_runtime.store.folder_watcher import Clock
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store
from gan_runtime.supervision import queue, recovery
from gan_runtime.supervision.dependencies import READY, DataDependencies, RunDependencies
from gan_runtime.supervision.queue import LiveInJournals, LiveRun
from gan_runtime.supervision.recovery import STALLED, AutoResume, StallDetection, stall_action
from gan_runtime.supervision.starters import Starter
from gan_runtime.supervision.starters.local import LocalStarter

LEAVING_SECONDS = (
    20.0  # for the processes of a run after its last event; a launcher gives its workers 10 s
)
GRACE_SECONDS = (
    60.0  # a stop ends at the next step boundary; one call of a large model takes seconds
)


class Supervisor:
    """Acts once per `tick`; called by one thread at a time, in the process that owns the store."""

    def __init__(
        self,
        home: Home,
        store: Store,
        ingestor: Ingestor,
        grace_seconds: float = GRACE_SECONDS,
        clock: Clock = time.monotonic,
        starter: Starter | None = None,
    ) -> None:
        """`starter`: by default one of processes on this host."""
        self._home, self._store, self._ingestor, self._grace_seconds = (
            home,
            store,
            ingestor,
            grace_seconds,
        )
        self._starter: Starter = starter or LocalStarter(Patience(clock))
        self._jobs = JobSupervisor(home, clock)
        self._stalls, self._auto_resume = (
            StallDetection(store, clock),
            AutoResume(home, store, clock),
        )
        self._data = DataDependencies(home)
        self._before = RunDependencies(home, store, self._auto_resume.will_resume)
        self._forced: dict[tuple[str, int], Reason] = {}  # run and attempt ended by force → why
        self._noted: dict[
            tuple[str, int], Cause
        ] = {}  # waiting run and attempt → whom it was noted to wait for
        # Attempts that are over, whose processes must go too. What an earlier owner knew of them
        # died with it.
        self._leaving = {live.key: live for live in recovery.orphans(home, self._starter)}
        self._patience = Patience(clock)
        self._turns_of_jobs: set[str] = set()
        self._without_store: LiveInJournals | None = None  # while the store cannot be asked
        # Read again only after news, so that waiting costs next to nothing.
        self._runs = queue.of_store(home, store)
        self._auto_resume.look()
        self._before.look(self._waiting())
        self._failed = False  # the last tick: its news may have arrived without an action

    def tick(self, trouble: Exception | None = None) -> None:
        """Ingests the journals, then acts on what they say.

        `trouble`: why the store cannot be asked just now. Then, and when ingesting fails, it acts
        on what the journals alone say, and raises the trouble at the end.
        """
        failed_before, self._failed = self._failed, True
        self._act(failed_before, trouble)
        self._failed = False

    def _act(self, look_again: bool, trouble: Exception | None) -> None:
        # Which trainers are gone is asked before the journals are read: a final event written
        # meanwhile is never missed.
        gone = {
            live.run.run_id
            for live in self._runs
            if live.status in ACTIVE and not self._starter.alive(live.as_attempt)
        }
        failed = self._take_in(bool(gone) or look_again, trouble)
        busy, acted = self._held() | self._turns_of_jobs, False
        for live in self._runs:
            try:
                acted |= self._act_on(live, busy, live.run.run_id in gone)
            except (
                GanRuntimeError,
                OSError,
            ) as error:  # such as a folder that cannot be written; the others go on
                failed = failed or error
        try:
            self._turns_of_jobs = self._jobs.tick(busy)
            acted |= self._has_store and self._auto_resume.tick()
        except (GanRuntimeError, OSError) as error:
            failed = failed or error
        if acted:
            failed = self._take_in(True, failed if not self._has_store else None) or failed
        self._end_leaving()
        if failed is not None:
            raise failed

    @property
    def _has_store(self) -> bool:
        return self._without_store is None

    def _take_in(self, is_to_look: bool, trouble: Exception | None) -> Exception | None:
        """Ingests what the journals say.

        Returns why the store cannot be asked, if so: runs do not wait for it.
        """
        if trouble is None:
            try:
                if self._ingestor.catch_up_news() or is_to_look:
                    self._set_runs(queue.of_store(self._home, self._store))
                    self._auto_resume.look()
                    self._before.look(self._waiting())
            except Exception as error:
                trouble = error
        if trouble is None:
            self._without_store = None
        else:
            self._without_store = self._without_store or LiveInJournals(self._home)
            self._set_runs(self._without_store.look(self._runs))
            self._before.look(self._waiting(), has_store=False)
        return trouble

    def _set_runs(self, runs: list[LiveRun]) -> None:
        """Which runs wait and train.

        One that was set aside while it trained stays under supervision.
        """
        keys = {live.key for live in runs}
        gone = [live for live in self._runs if live.status in ACTIVE and live.key not in keys]
        set_aside = [live for live in gone if not recovery.is_over(live.as_attempt)]
        self._runs = [*set_aside, *runs]
        self._leaving |= {live.key: live for live in gone if live not in set_aside}

    def _waiting(self) -> list[RunDir]:
        return [live.run for live in self._runs if live.status == "queued"]

    def _act_on(self, live: LiveRun, busy: set[str], is_gone: bool) -> bool:
        """Does what one run needs; adds its accelerator to the busy ones.

        Returns whether its journal has news.
        """
        if live.status == "queued":
            return self._act_on_waiting(live, busy)
        if is_gone:
            if self._starter.never_began(live.as_attempt) and queue.requeue(live.run, live.attempt):
                busy.add(live.accelerator)  # at the next tick it is the first of the queue again
            else:
                self._note_end(live)
            return True
        if self._starter.is_alone(live.as_attempt):
            busy.add(live.accelerator)
        if live.run.stop_file.exists() and self._starter.stop(live.as_attempt, self._grace_seconds):
            self._forced[live.key] = Reason.STOP_TOOK_TOO_LONG
        return live.status == "running" and self._has_store and self._act_on_stall(live)

    def _act_on_stall(self, live: LiveRun) -> bool:
        """Notes that a run lives and does not train; stops or ends it where its options ask for
        that.
        """
        news = self._stalls.news(live.run, live.attempt)
        if news is None:
            return False
        journal.append(live.run.supervisor_journal, live.attempt, news)
        if news.topic == STALLED and not live.run.stop_file.exists():
            if stall_action(live.run) == "stop":
                live.run.request_stop(Reason.STALLED)
            elif stall_action(live.run) == "restart":
                self._forced[live.key] = Reason.STALLED
                self._starter.end(live.as_attempt)
        return True

    def _act_on_waiting(self, live: LiveRun, busy: set[str]) -> bool:
        """A run whose data set is in preparation, or that starts after another one, waits and holds
        up nobody.
        """
        if live.run.stop_file.exists():
            self._note(live, "stopped", cause(Reason.TAKEN_FROM_QUEUE))
            return True
        readiness = self._data.of(live.run, live.attempt)
        if readiness == READY:
            readiness = self._before.of(live.run)
        if readiness.failure:
            self._note(live, "failed", readiness.failure)
        elif readiness.news is not None:
            journal.append(live.run.supervisor_journal, live.attempt, readiness.news)
        elif not readiness.is_ready or live.accelerator in busy:
            return False
        else:
            return self._act_on_next(live, busy)
        return True

    def _act_on_next(self, live: LiveRun, busy: set[str]) -> bool:
        """The first run in line for its accelerator starts, or holds up those behind it.

        Otherwise many small runs would keep a large one waiting for ever.
        """
        with self._starter.claim(live.as_attempt) as claim:
            if claim.is_taken:
                self._start(live, claim)
        if not claim.is_taken or self._starter.is_alone(live.as_attempt):
            busy.add(live.accelerator)
        if claim.is_taken:
            return True
        return self._note_wait(live, device_locks.taken_elsewhere(claim, self._home.path.resolve()))

    def _note_wait(self, live: LiveRun, why: Cause | None) -> bool:
        """Once for each training of another home.

        The queue shows which run of this home has them.
        """
        if why is None or self._noted.get(live.key) == why:
            return False
        self._noted[live.key] = why
        newest = latest_status(live.run)  # a person may have moved it in the queue
        if newest.cause == why:
            return False
        journal.append(live.run.supervisor_journal, live.attempt, newest.because(why))
        return True

    def _end_leaving(self) -> None:
        """Processes of a run that has ended go by themselves, or with their launcher.

        The rest have lost it.
        """
        for key, live in list(self._leaving.items()):
            if (
                self._patience.seconds(f"leaving {live.attempt}", live.run.run_id, key)
                > LEAVING_SECONDS
            ):
                del self._leaving[key]
                self._starter.end(live.as_attempt)

    def _held(self) -> set[str]:
        """Accelerators of trainers that have not quite ended, also after their final event."""
        return self._starter.held(live.run.run_id for live in self._runs)

    def _start(self, live: LiveRun, claim: Claim) -> None:
        labels = ", ".join(device.label for device in claim.devices if device.visible)
        self._note(live, "starting", cause(Reason.STARTING, devices=labels or live.accelerator))
        try:
            self._starter.start(live.as_attempt, claim)
        except OSError as error:
            message = error.strerror or type(error).__name__
            self._note(live, "lost", cause(Reason.NOT_STARTED, message=message))

    def _note_end(self, live: LiveRun) -> None:
        """Of a trainer that is gone and has left no final event."""
        how = self._starter.clean_up(live.as_attempt)
        forced = self._forced.pop(live.key, None)
        recovery.clean_run(live.run)
        is_stopped = live.run.stop_file.exists()
        if forced is Reason.STOP_TOOK_TOO_LONG:
            why = cause(forced, seconds=round(self._grace_seconds), how=how)
        elif is_stopped:
            why = cause(Reason.ENDED_UNSAVED, how=how)
        else:
            why = cause(forced or Reason.TRAINER_EXITED, how=how)
        self._note(live, "stopped" if is_stopped else "lost", why)

    def _note(self, live: LiveRun, status: journal.Status, why: Cause) -> None:
        journal.append(live.run.supervisor_journal, live.attempt, StatusChange.of(status, why))
