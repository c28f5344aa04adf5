"""The supervisor starts waiting runs on free devices, stops runs on request, and records the end of
trainers that did not report it.

Its state is in files and in the database, so after a crash a new supervisor continues. Trainers are
separate processes and train on.
"""

from __future__ import annotations

import time

from gan_runtime import device_locks
from gan_runtime.base.errors import GanRuntimeError
from gan_runtime.device_locks import Claim
from gan_runtime.evaluation.training_requests import RequestsWhileTraining
from gan_runtime.jobs.job_queue import JobSupervisor
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.journal import ACTIVE, StatusChange
from gan_runtime.records.run_folder import RunDir, latest_status
from gan_runtime.records.states import Cause, Reason, StateTimer, cause
from gan_runtime.spec.run_options import HERE
from gan_runtime.store.folder_watcher import Clock
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store
from gan_runtime.supervision import queue, recovery
from gan_runtime.supervision.admission import READY, DataDependencies, RunDependencies
from gan_runtime.supervision.queue import LiveInJournals, LiveRun
from gan_runtime.supervision.recovery import STALLED, AutoResume, StallDetection, stall_action
from gan_runtime.supervision.starters import LocalStarter, Starter

# For processes to exit after the end of a run; a launcher gives its workers 10 s.
LEAVING_SECONDS = 20.0
GRACE_SECONDS = 60.0  # for a stop, which waits until a call on the device ends


class Supervisor:
    """Acts once per `tick`, in the process that owns the home. Not thread-safe."""

    def __init__(
        self,
        home: Home,
        store: Store,
        ingestor: Ingestor,
        grace_seconds: float = GRACE_SECONDS,
        clock: Clock = time.monotonic,
        starter: Starter | None = None,
    ) -> None:
        """`starter`: by default a `LocalStarter`."""
        self._home, self._store, self._ingestor, self._grace_seconds = (
            home,
            store,
            ingestor,
            grace_seconds,
        )
        self._starter: Starter = starter or LocalStarter(StateTimer(clock))
        self._jobs, self._measured = JobSupervisor(home, clock), RequestsWhileTraining(home, clock)
        self._stalls, self._auto_resume = (
            StallDetection(store, clock),
            AutoResume(home, store, clock),
        )
        self._data = DataDependencies(home)
        self._before = RunDependencies(home, store, self._auto_resume.will_resume)
        self._forced: dict[tuple[str, int], Reason] = {}  # killed run and attempt → reason
        # Waiting run and attempt → last journaled cause.
        self._noted: dict[tuple[str, int], Cause] = {}
        # Ended attempts with processes that must exit, including those of an earlier owner.
        self._leaving = {live.key: live for live in recovery.orphans(home, self._starter)}
        self._timer = StateTimer(clock)
        self._turns_of_jobs: set[str] = set()
        self._without_store: LiveInJournals | None = None  # set while the database does not answer
        # Read again only after new journal lines.
        self._runs = queue.of_store(home, store)
        self._measured.expect(self._training())
        self._auto_resume.refresh()
        self._before.refresh(self._waiting())
        self._failed = False  # whether the last tick failed, so its news may be unprocessed

    def tick(self, trouble: Exception | None = None) -> None:
        """Ingests the journals, then acts on them.

        `trouble`: why the database does not answer. In that case, or if the ingest fails, the tick
        uses only the journals, and raises the error at the end.
        """
        failed_before, self._failed = self._failed, True
        self._act(failed_before, trouble)
        self._failed = False

    def _act(self, must_read: bool, trouble: Exception | None) -> None:
        # Checked before the journals are read, so that a final event written in between is not
        # missed.
        exited = {
            live.run.run_id
            for live in self._runs
            if live.status in ACTIVE and not self._starter.alive(live.as_attempt)
        }
        failed = self._ingest(bool(exited) or must_read, trouble)
        busy, acted = self._busy_accelerators() | self._turns_of_jobs, False
        for live in self._runs:
            try:
                acted |= self._act_on(live, busy, live.run.run_id in exited)
            except (GanRuntimeError, OSError) as error:  # such as a read-only folder of one run
                failed = failed or error
        try:
            acted |= self._queue_renewed()
            self._turns_of_jobs = self._jobs.tick(busy)
            self._measured.tick(self._training())
            acted |= self._has_store and self._auto_resume.tick()
        except (GanRuntimeError, OSError) as error:
            failed = failed or error
        if acted:
            failed = self._ingest(True, failed if not self._has_store else None) or failed
        self._end_leaving()
        if failed is not None:
            raise failed

    @property
    def _has_store(self) -> bool:
        return self._without_store is None

    def _ingest(self, must_read: bool, trouble: Exception | None) -> Exception | None:
        """Ingests the journals; returns the error if the database does not answer."""
        if trouble is None:
            try:
                if self._ingestor.catch_up_news(at_once=must_read) or must_read:
                    self._set_runs(queue.of_store(self._home, self._store))
                    self._auto_resume.refresh()
                    self._before.refresh(self._waiting())
            except Exception as error:
                trouble = error
        if trouble is None:
            self._without_store = None
        else:
            self._without_store = self._without_store or LiveInJournals(self._home)
            self._set_runs(self._without_store.refresh(self._runs))
            self._before.refresh(self._waiting(), has_store=False)
        return trouble

    def _set_runs(self, runs: list[LiveRun]) -> None:
        """Sets the live runs. A run that was quarantined while training stays under supervision."""
        keys = {live.key for live in runs}
        absent = [live for live in self._runs if live.status in ACTIVE and live.key not in keys]
        quarantined = [live for live in absent if not recovery.is_over(live.as_attempt)]
        self._runs = [*quarantined, *runs]
        # A target that starts a job again has the next attempt in it.
        self._leaving |= {
            live.key: live for live in absent if live not in quarantined and live.target == HERE
        }

    def _training(self) -> list[tuple[RunDir, int]]:
        return [(live.run, live.attempt) for live in self._runs if live.status == "running"]

    def _waiting(self) -> list[RunDir]:
        return [live.run for live in self._runs if live.status == "queued"]

    def _act_on(self, live: LiveRun, busy: set[str], has_exited: bool) -> bool:
        """Acts on one run, and adds its accelerator to `busy`.

        Returns whether the run's journal has new lines.
        """
        if live.status == "queued":
            return self._act_on_waiting(live, busy)
        if has_exited:
            if self._starter.never_began(live.as_attempt) and queue.requeue(live.run, live.attempt):
                busy.add(live.device)  # for this run, now first in the queue
            else:
                self._note_end(live)
            return True
        if self._starter.is_alone(live.as_attempt):
            busy.add(live.device)
        if live.run.stop_file.exists() and self._starter.stop(live.as_attempt, self._grace_seconds):
            self._forced[live.key] = Reason.STOP_TOOK_TOO_LONG
        return live.status == "running" and self._has_store and self._act_on_stall(live)

    def _act_on_stall(self, live: LiveRun) -> bool:
        """Logs a stall; stops or kills the run if its options request that."""
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

    def _queue_renewed(self) -> bool:
        """Queues the next attempts that targets start by themselves; returns whether it did."""
        renewed = [(each, self._starter.ending(each)) for each in self._starter.renewed()]
        for attempt, ending in renewed:
            if ending is not None:
                queue.renew(self._home, attempt.run, attempt.number, ending[1])
        return bool(renewed)

    def _act_on_waiting(self, live: LiveRun, busy: set[str]) -> bool:
        """Starts a waiting run if possible. A run that waits for data or another run does not block
        the queue.
        """
        if live.run.stop_file.exists():
            self._starter.end(live.as_attempt)  # a job that waits elsewhere
            self._note(live, "stopped", cause(Reason.TAKEN_FROM_QUEUE))
            return True
        if ending := self._starter.ending(live.as_attempt):
            self._note_ending(live, *ending)
            return True
        readiness = self._data.of(live.run, live.attempt)
        if readiness == READY:
            readiness = self._before.of(live.run)
        if readiness.failure:
            self._note(live, "failed", readiness.failure)
        elif readiness.news is not None:
            journal.append(live.run.supervisor_journal, live.attempt, readiness.news)
        elif not readiness.is_ready or live.device in busy:
            return False
        else:
            return self._act_on_next(live, busy)
        return True

    def _act_on_next(self, live: LiveRun, busy: set[str]) -> bool:
        """Starts the first run for an accelerator, or lets it block the runs behind it.

        Otherwise many small runs could delay a large one forever.
        """
        with self._starter.claim(live.as_attempt) as claim:
            if claim.is_taken:
                self._start(live, claim)
        if not claim.is_taken or self._starter.is_alone(live.as_attempt):
            busy.add(live.device)
        if claim.is_taken:
            return True
        return self._note_wait(live, device_locks.wait_cause(claim, self._home.path.resolve()))

    def _note_wait(self, live: LiveRun, why: Cause | None) -> bool:
        """Journals why a run waits, once for each training of another home that has the devices."""
        if why is None or self._noted.get(live.key) == why:
            return False
        self._noted[live.key] = why
        newest = latest_status(live.run)  # its place in the queue may have changed
        if newest.cause == why:
            return False
        journal.append(live.run.supervisor_journal, live.attempt, newest.because(why))
        return True

    def _end_leaving(self) -> None:
        """Kills processes that are still alive LEAVING_SECONDS after their attempt ended."""
        for key, live in list(self._leaving.items()):
            if (
                self._timer.seconds(f"leaving {live.attempt}", live.run.run_id, key)
                > LEAVING_SECONDS
            ):
                del self._leaving[key]
                self._starter.end(live.as_attempt)

    def _busy_accelerators(self) -> set[str]:
        """The accelerators of trainers that still run, even after their final event."""
        return self._starter.busy_accelerators(live.run.run_id for live in self._runs)

    def _start(self, live: LiveRun, claim: Claim) -> None:
        is_here = live.target == HERE
        labels = ", ".join(
            device.label for device in claim.devices if device.visible or not is_here
        )
        self._note(live, "starting", cause(Reason.STARTING, devices=labels or live.accelerator))
        try:
            self._starter.start(live.as_attempt, claim)
        except OSError as error:
            message = error.strerror or type(error).__name__
            self._note(live, "lost", cause(Reason.NOT_STARTED, message=message))

    def _note_end(self, live: LiveRun) -> None:
        """Records the end of a trainer that exited without a final event."""
        ending = self._starter.ending(live.as_attempt)
        how = self._starter.clean_up(live.as_attempt)
        forced = self._forced.pop(live.key, None)
        if ending and not forced:
            self._note_ending(live, *ending)
            return
        recovery.clean_run(live.run)
        is_stopped = live.run.stop_file.exists()
        if forced is Reason.STOP_TOOK_TOO_LONG:
            why = cause(forced, seconds=round(self._grace_seconds), how=how)
        elif is_stopped:
            why = cause(Reason.ENDED_UNSAVED, how=how)
        else:
            why = cause(forced or Reason.TRAINER_EXITED, how=how)
        self._note(live, "stopped" if is_stopped else "lost", why)

    def _note_ending(self, live: LiveRun, status: journal.Status, why: Cause) -> None:
        if status == "queued":
            queue.renew(self._home, live.run, live.attempt, why)
        else:
            self._note(live, status, why)

    def _note(self, live: LiveRun, status: journal.Status, why: Cause) -> None:
        journal.append(live.run.supervisor_journal, live.attempt, StatusChange.of(status, why))
