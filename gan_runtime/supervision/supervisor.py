"""Starts waiting runs on devices that are free, stops them, and tells the truth about those that died.

Everything it knows stands in files and in the store, so a new supervisor takes over where a killed one left off:
trainers are processes of their own and go on meanwhile.
"""

from __future__ import annotations

import time

from gan_runtime import device_locks
from gan_runtime.base.deadlines import Patience
from gan_runtime.base.errors import GanRuntimeError
from gan_runtime.device_locks import Claim
from gan_runtime.jobs.job_supervisor import Keeper
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

LEAVING_SECONDS = 20.0  # for the processes of a run after its last word; a launcher gives its workers 10 s
GRACE_SECONDS = 60.0  # a stop ends at the next step boundary; one call of a large model takes seconds


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
        self._home, self._store, self._ingestor, self._grace_seconds = home, store, ingestor, grace_seconds
        self._starter: Starter = starter or LocalStarter(Patience(clock))
        self._awaited = DataDependencies(home)
        self._keeper = Keeper(home, clock)
        self._stillness, self._revival = StallDetection(store, clock), AutoResume(home, store, clock)
        self._awaited_runs = RunDependencies(home, store, self._revival.will_resume)
        self._forced: dict[tuple[str, int], Reason] = {}  # run and attempt that was ended by force → why
        self._waits_for: dict[tuple[str, int], Cause] = {}  # waiting run and attempt → what was told of that
        # Attempts that are over, whose processes must go too. What an earlier owner knew of them died with it.
        self._leaving = {live.key: live for live in recovery.orphans(home, self._starter)}
        self._patience = Patience(clock)
        self._turns_of_jobs: set[str] = set()
        self._without_store: LiveInJournals | None = None  # while the store cannot be asked
        # Asked again only after news, so that waiting costs next to nothing.
        self._known = queue.of_store(home, store)
        self._revival.look()
        self._awaited_runs.look(self._waiting())
        self._failed = False  # the last tick: its news may have arrived without being acted on

    def tick(self, trouble: Exception | None = None) -> None:
        """Takes in the journals, then acts on what they say. `trouble`: why the store cannot be asked just now. Then, and when taking in
        fails, runs are looked after as their journals alone say, and it is raised at the end."""
        failed_before, self._failed = self._failed, True
        self._act(failed_before, trouble)
        self._failed = False

    def _act(self, look_again: bool, trouble: Exception | None) -> None:
        # Who is dead is asked before the journals are read: a final event written meanwhile is then never missed.
        gone = {
            live.run.run_id
            for live in self._known
            if live.status in ACTIVE and not self._starter.alive(live.as_attempt)
        }
        failed = self._take_in(bool(gone) or look_again, trouble)
        busy, acted = self._held() | self._turns_of_jobs, False
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
            acted |= self._has_store and self._revival.tick()
        except (GanRuntimeError, OSError) as error:
            failed = failed or error
        if acted:
            failed = self._take_in(True, failed if not self._has_store else None) or failed
        self._see_off()
        if failed is not None:
            raise failed

    @property
    def _has_store(self) -> bool:
        return self._without_store is None

    def _take_in(self, is_to_look: bool, trouble: Exception | None) -> Exception | None:
        """What the journals say by now. Returns why the store cannot be asked, if so: dead trainers, stops and the queue do not wait for it."""
        if trouble is None:
            try:
                if self._ingestor.catch_up_news() or is_to_look:
                    self._look()
            except Exception as error:
                trouble = error
        if trouble is None:
            self._without_store = None
        else:
            self._without_store = self._without_store or LiveInJournals(self._home)
            self._now_known(self._without_store.look(self._known))
            self._awaited_runs.look(self._waiting(), has_store=False)
        return trouble

    def _look(self) -> None:
        """Which runs wait, train, and have ended since the last look."""
        self._now_known(queue.of_store(self._home, self._store))
        self._revival.look()
        self._awaited_runs.look(self._waiting())

    def _now_known(self, known: list[LiveRun]) -> None:
        """`known`: as the store says. A run that it has set aside while it trained is looked after all the same."""
        still = {live.key for live in known}
        gone = [live for live in self._known if live.status in ACTIVE and live.key not in still]
        aside = [live for live in gone if not recovery.is_over(live.as_attempt)]
        self._known = [*aside, *known]
        self._leaving |= {live.key: live for live in gone if live not in aside}

    def _waiting(self) -> list[RunDir]:
        return [live.run for live in self._known if live.status == "queued"]

    def _act_on(self, live: LiveRun, busy: set[str], is_gone: bool) -> bool:
        """What has to be done for one run; adds its accelerator to the busy ones. Returns whether its journal has news."""
        if live.status == "queued":
            return self._act_on_waiting(live, busy)
        if is_gone:
            if self._starter.never_began(live.as_attempt) and queue.requeue(live.run, live.attempt):
                busy.add(live.accelerator)  # at the next tick it is the first of the queue again
            else:
                self._bury(live)
            return True
        if self._starter.is_alone(live.as_attempt):
            busy.add(live.accelerator)
        if live.run.stop_file.exists() and self._starter.stop(live.as_attempt, self._grace_seconds):
            self._forced[live.key] = Reason.STOP_TOOK_TOO_LONG
        return live.status == "running" and self._has_store and self._act_on_stillness(live)

    def _act_on_stillness(self, live: LiveRun) -> bool:
        """A run that lives and does not train is told of, and stopped or ended where its options ask for it."""
        news = self._stillness.news(live.run, live.attempt)
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
        """A run whose data set is still being prepared, or that starts after another one, waits for it and holds up nobody."""
        if live.run.stop_file.exists():
            self._note(live, "stopped", cause(Reason.TAKEN_FROM_QUEUE))
            return True
        awaited = self._awaited.by(live.run, live.attempt)
        if awaited == READY:
            awaited = self._awaited_runs.by(live.run)
        if awaited.failure:
            self._note(live, "failed", awaited.failure)
        elif awaited.news is not None:
            journal.append(live.run.supervisor_journal, live.attempt, awaited.news)
        elif not awaited.is_ready or live.accelerator in busy:
            return False
        else:
            return self._act_on_next(live, busy)
        return True

    def _act_on_next(self, live: LiveRun, busy: set[str]) -> bool:
        """The first one that waits for its accelerator starts, or holds up those behind it, so that many small runs do not keep a
        large one waiting for ever."""
        with self._starter.claim(live.as_attempt) as claim:
            if claim.is_taken:
                self._start(live, claim)
        if not claim.is_taken or self._starter.is_alone(live.as_attempt):
            busy.add(live.accelerator)
        return claim.is_taken or self._tell_who_has_it(
            live, device_locks.taken_elsewhere(claim, self._home.path.resolve())
        )

    def _tell_who_has_it(self, live: LiveRun, why: Cause | None) -> bool:
        """Once of each training of another home. Who waits for a run of this home sees it in the queue."""
        if why is None or self._waits_for.get(live.key) == why:
            return False
        self._waits_for[live.key] = why
        newest = latest_status(live.run)  # a person may have moved it in the queue
        if newest.cause == why:
            return False
        journal.append(live.run.supervisor_journal, live.attempt, newest.because(why))
        return True

    def _see_off(self) -> None:
        """Processes of a run that has said how it ended go by themselves, or with their launcher. Who is left has lost it."""
        for key, live in list(self._leaving.items()):
            if self._patience.seconds(f"leaving {live.attempt}", live.run.run_id, key) > LEAVING_SECONDS:
                del self._leaving[key]
                self._starter.end(live.as_attempt)

    def _held(self) -> set[str]:
        """Accelerators of trainers that have not quite ended, also after their final event."""
        return self._starter.held(live.run.run_id for live in self._known)

    def _start(self, live: LiveRun, claim: Claim) -> None:
        labels = ", ".join(device.label for device in claim.devices if device.visible)
        self._note(live, "starting", cause(Reason.STARTING, devices=labels or live.accelerator))
        try:
            self._starter.start(live.as_attempt, claim)
        except OSError as error:
            message = error.strerror or type(error).__name__
            self._note(live, "lost", cause(Reason.NOT_STARTED, message=message))

    def _bury(self, live: LiveRun) -> None:
        """The process is gone and has left no final event."""
        how = self._starter.bury(live.as_attempt)
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
