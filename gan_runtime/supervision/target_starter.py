"""The start and end of trainers as jobs of targets.

A run of a target waits in its home's queue until its job runs: submitted, then for the reason that
the target gives. The supervisor asks here at each tick and gets the newest known state. The file
target.json of a run names its job. It is written before the submission, so a new owner looks for
that job before it submits again.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from gan_runtime.base.errors import (
    GanRuntimeError,
    HomeError,
    JournalError,
    TargetSettingError,
)
from gan_runtime.base.slurm import TIME_LIMIT
from gan_runtime.device_locks import Claim
from gan_runtime.device_locks.host_devices import HostDevice
from gan_runtime.records import run_folder
from gan_runtime.records.home import Home
from gan_runtime.records.identity import SILENCE_SECONDS
from gan_runtime.records.journal import ENDED, Status
from gan_runtime.records.run_folder import RunDir, latest_status, write_whole
from gan_runtime.records.states import Cause, Reason, StateTimer, cause
from gan_runtime.spec import RunSpec
from gan_runtime.supervision import submitted_job
from gan_runtime.supervision.starters import Attempt
from gan_runtime.supervision.submitted_job import KnownJob, SubmittedJob
from gan_runtime.supervision.target_watch import TargetWatch
from gan_runtime.targets import configuration
from gan_runtime.targets.configuration import AnyTarget, KubernetesTarget, SshTarget
from gan_runtime.targets.far_home import FarHome
from gan_runtime.targets.kubernetes import Kubernetes
from gan_runtime.targets.slurm import FarSlurm, Slurm
from gan_runtime.targets.ssh_host import SshHost
from gan_runtime.targets.target import Offer, RunTarget, Seen, Submitted, token_of
from gan_runtime.targets.transport import Here, Ssh

NEW_RUN = "NAME"  # in the script of a run that has no name yet
FINAL_LINE_SECONDS = 60.0  # for the last lines of an ended job to arrive through the file system


def target_of(options: AnyTarget, home: Home) -> RunTarget:
    """The target with these settings, for runs of this home."""
    if isinstance(options, SshTarget):
        return SshHost(options, Ssh(options.host, options.command), home)
    transport = Ssh(options.host) if options.host else Here()
    if isinstance(options, KubernetesTarget):
        return Kubernetes(options, transport, home)
    slurm = Slurm(options, transport, home)
    return FarSlurm(slurm, FarHome(options, transport, home)) if options.home else slurm


def first_script(target: RunTarget | TargetWatch, home: Home, spec: RunSpec) -> str:
    """The script of the first attempt of a new run."""
    folder = home.runs.resolve() / NEW_RUN
    return target.script(submitted_job.new_job(spec, folder, f"gan-{NEW_RUN}-1", 1))


class TargetStarter:
    """Trainers as jobs of the targets of a home."""

    def __init__(
        self,
        home: Home,
        timer: StateTimer,
        make: Callable[[AnyTarget, Home], RunTarget] = target_of,
        clock: Callable[[], float] = time.monotonic,
        has_threads: bool = True,
    ) -> None:
        """`has_threads`: False where the caller uses `ask_all`."""
        self._home, self._timer, self._make, self._clock = home, timer, make, clock
        self._has_threads = has_threads
        self._watches: dict[str, tuple[AnyTarget, TargetWatch]] = {}
        self._targets: dict[str, AnyTarget] = {}
        self._stamp = -1  # of targets.toml
        self._lock = threading.RLock()  # pages and threads of targets ask as well
        self._submissions: dict[str, SubmittedJob] = {}  # by run; not over
        self._is_loaded = False
        self._stops: dict[tuple[str, int], int] = {}  # by run and attempt: rounds of its target
        self._considered: dict[str, Seen] = {}  # by run: the last answer that `renewed` acted on

    def _load(self) -> None:
        """Continues with the jobs of an earlier owner. Called in the first tick, so by no process
        that does not own the home.
        """
        if self._is_loaded:
            return
        self._is_loaded = True
        for path in self._home.runs.glob(f"*/{run_folder.TARGET_FILE}"):
            run = RunDir(path.parent)
            submission = submitted_job.stored(run)
            if submission is None or submission.is_over:
                continue
            self._submissions[run.run_id] = submission
            self._ask_where_submitted(submission)
            with contextlib.suppress(GanRuntimeError, OSError):
                if not submission.job and latest_status(run).status in ENDED:
                    self._cancel(run, submission)  # the earlier owner did not learn of the job
                else:
                    self._go_on(run, submission)
        self._cancel_deleted()

    def _cancel_deleted(self) -> None:
        """Cancels the jobs of runs that were deleted while the home had no owner."""
        for path in self._home.bin.glob(f"*/{run_folder.TARGET_FILE}"):
            run = RunDir(path.parent)
            submission = submitted_job.stored(run)
            if submission is None or submission.is_over or submission.is_cancelled:
                continue
            cancelled = submission.model_copy(update={"is_cancelled": True})
            with contextlib.suppress(GanRuntimeError, OSError):
                submitted_job.store(run, cancelled)
                self._cancel(run, cancelled)

    # ---- the protocol of starters ----------------------------------------------------------------

    def claim(self, attempt: Attempt) -> Claim:
        """Submits the attempt once; the claim is taken when its job runs."""
        try:
            return self._claim(attempt)
        except TargetSettingError as error:
            return Claim(why=cause(Reason.DEVICES_UNKNOWN, message=str(error).rstrip(".")))

    def _claim(self, attempt: Attempt) -> Claim:
        submission = self._of(attempt)
        if submission is None:
            return Claim(why=self._submit(attempt))
        seen = self._watch(submission.target)[1].seen(submission.token)
        if seen is None or seen.stage == "ended":  # `ending` says how
            return Claim(why=cause(Reason.SUBMITTED, target=submission.target, job=submission.job))
        if seen.stage == "waiting":
            return Claim(why=submitted_job.wait_of(submission, seen))
        return Claim(devices=[HostDevice("", "", seen.nodes or submission.target)])

    def start(self, attempt: Attempt, claim: Claim) -> None:
        """Does nothing: the job has started."""

    def is_alone(self, attempt: Attempt) -> bool:  # noqa: ARG002
        """False: a target has a queue."""
        return False

    def alive(self, attempt: Attempt) -> bool:
        """Whether the job of the attempt waits, runs or is unknown; for FINAL_LINE_SECONDS also
        after its end.
        """
        self._load()
        run = attempt.run
        submission = self._submissions.get(run.run_id)
        if submission is None or attempt.number < submission.attempt:
            return False
        seen = self._seen(submission)
        if seen is None:
            is_known = self._is_known(submission.target)
            return is_known or self._silent_seconds(attempt, seen) < SILENCE_SECONDS
        # A later attempt runs in a job that the target has started again and not shown yet.
        if submission.attempt + seen.restarts > attempt.number:
            return False
        if seen.stage == "ended" and not seen.is_complete:
            return self._silent_seconds(attempt, seen) < FINAL_LINE_SECONDS
        return seen.stage != "ended"

    def _silent_seconds(self, attempt: Attempt, seen: Seen | None) -> float:
        """How long the job has had this state, and the run's journals no new line."""
        with contextlib.suppress(JournalError):
            state = (attempt.number, seen and seen.stage, attempt.run.trainer_stats())
            return self._timer.seconds("job", attempt.run.run_id, state)
        return 0.0

    def never_began(self, attempt: Attempt) -> bool:  # noqa: ARG002
        """False: `ending` knows."""
        return False

    def ending(self, attempt: Attempt) -> tuple[Status, Cause] | None:
        """How the job of an attempt ended; "queued" if the target starts it again."""
        submission = self._of(attempt)
        if submission is None:
            return None
        if submission.refusal:
            self._forget(attempt.run, submission)
            return "failed", cause(
                Reason.TARGET_REFUSED, target=submission.target, message=submission.refusal
            )
        seen = self._seen(submission)
        if seen is None:
            return None
        if submission.attempt + seen.restarts > attempt.number:
            return "queued", cause(Reason.STARTED_AGAIN, target=submission.target)
        if seen.stage != "ended" or self.alive(attempt):
            return None
        self._forget(attempt.run, submission)
        return submitted_job.ending_of(seen, submission, attempt.run)

    def renewed(self) -> list[Attempt]:
        """Ended attempts whose job the target starts again."""
        self._load()
        attempts = []
        for run_id, submission in list(self._submissions.items()):
            seen, run = self._seen(submission), RunDir(self._home.runs / run_id)
            if not run.path.exists():  # deleted while its job waited
                del self._submissions[run_id]
                self._cancel(run, submission)
                continue
            is_known = seen is not None and self._considered.get(run_id) is seen
            if seen is None or seen.stage == "running" or (seen.stage == "waiting" and is_known):
                continue
            self._considered[run_id] = seen  # once per answer, since journals are read
            with contextlib.suppress(GanRuntimeError, OSError):
                newest = latest_status(run)
                is_ended = newest.status in ENDED
                if is_ended and seen.stage == "ended":
                    self._forget(run, submission)
                elif is_ended and submission.attempt + seen.restarts > newest.attempt:
                    attempts.append(Attempt(run, newest.attempt, "", submission.target))
        return attempts

    def stop(self, attempt: Attempt, grace_seconds: float) -> bool:
        """The trainer reads STOP in its folder; `grace_seconds` after the target has answered again
        the job is cancelled.
        """
        if attempt.run.stop_asker == TIME_LIMIT:  # it has two minutes
            return False
        is_told = self._has_heard(attempt)
        state = (attempt.number, is_told)
        if self._timer.seconds("stop", attempt.run.run_id, state) > grace_seconds and is_told:
            self.end(attempt)
            return True
        return False

    def _has_heard(self, attempt: Attempt) -> bool:
        """Whether the target has answered a whole round since the stop was first seen here."""
        with contextlib.suppress(GanRuntimeError):
            watch = self._watch(attempt.target)[1]
            first = self._stops.setdefault((attempt.run.run_id, attempt.number), watch.rounds)
            return watch.rounds > first + 1 and watch.silent_since is None
        return True  # the target is not in the settings

    def end(self, attempt: Attempt) -> None:
        """Cancels the job."""
        if submission := self._of(attempt):
            self._cancel(attempt.run, submission)

    def clean_up(self, attempt: Attempt) -> str:  # noqa: ARG002
        """Nothing remains on this host."""
        return ""

    def present(self, runs: Path) -> list[Attempt]:  # noqa: ARG002
        """None: jobs are not processes of this host."""
        return []

    def busy_accelerators(self, live: Iterable[str]) -> set[str]:  # noqa: ARG002
        """None of this host."""
        return set()

    def ask_all(self) -> None:
        """Makes all calls that are due, in this thread."""
        for _, watch in self._watches.values():
            watch.run_once()

    def close(self) -> None:
        """Ends the threads. Jobs run on."""
        for _, watch in list(self._watches.values()):
            watch.end()

    def job_of(self, run: RunDir) -> KnownJob | None:
        """The newest submission of a run, and the newest state of its job until it is over; None
        without a submission.
        """
        if submission := self._submissions.get(run.run_id):
            return KnownJob(submission, self._seen(submission))
        submission = submitted_job.stored(run)
        return KnownJob(submission, None) if submission else None

    def offer(self, target: str) -> Offer | None:
        """What a target has; None before its first answer. Raises TargetSettingError."""
        return self._watch(target)[1].offer()

    def script(self, spec: RunSpec) -> str:
        """The script of the first attempt of a new run. Raises TargetSettingError."""
        return first_script(self._watch(spec.target)[1], self._home, spec)

    def trouble(self, target: str) -> str:
        """Why nothing new is known of the jobs of a target; "" while it answers."""
        if not self._is_known(target):
            return f"{target} is not in targets.toml"
        since = self._watch(target)[1].silent_since
        return f"{target} has not answered since {since:%H:%M} UTC" if since else ""

    def _is_known(self, target: str) -> bool:
        try:
            self._watch(target)
        except GanRuntimeError:
            return False
        return True

    # ---- parts -----------------------------------------------------------------------------------

    def _watch(self, name: str) -> tuple[AnyTarget, TargetWatch]:
        """The settings and the watch of a target, by the present settings. A target that is no
        longer in them keeps its last ones.
        """
        with self._lock:
            options, known = self._settings(), self._watches.get(name)
            if known is None and name not in options:
                raise TargetSettingError(configuration.unknown(name, options))
            is_new = name in options and (known is None or options[name] != known[0])
            if is_new and not self._would_move(name):
                self._ask_at(name, options[name])
            return self._watches[name]

    def _ask_at(self, name: str, options: AnyTarget) -> None:
        """Asks a target by these settings from now on."""
        target, known = self._make(options, self._home), self._watches.get(name)
        if known is not None:
            known[1].change(target, options.pace)
            watch = known[1]
        else:
            watch = TargetWatch(name, target, options.pace, self._clock, self._has_threads)
        self._watches[name] = options, watch

    def _ask_where_submitted(self, submission: SubmittedJob) -> None:
        """Asks the target of a job on the host of its submission, in the home there. A target that
        the user has removed, or replaced by one of another kind, is given up.
        """
        name, now = submission.target, self._settings().get(submission.target)
        if now is None or submission.place is None or now.kind != submission.place[0]:
            return
        _, host, home = submission.place
        if _place(now) == submission.place:
            return
        there = (
            {"host": host} if isinstance(now, KubernetesTarget) else {"host": host, "home": home}
        )
        with self._lock:
            self._ask_at(name, now.model_copy(update=there))

    def _would_move(self, name: str) -> bool:
        """Whether the new settings lead to another host or home, while jobs run on the one before:
        that one is asked until they have ended.
        """
        has_jobs = any(each.target == name for each in self._submissions.values())
        known = self._watches.get(name)
        return has_jobs and known is not None and _place(self._targets[name]) != _place(known[0])

    def _settings(self) -> dict[str, AnyTarget]:
        """The targets by their file, read again when it changes; the last ones if it is wrong."""
        try:
            stamp = self._home.targets.stat().st_mtime_ns
        except OSError:
            stamp = 0
        if stamp != self._stamp:
            with contextlib.suppress(TargetSettingError):
                self._targets = configuration.targets_of(self._home)
            self._stamp = stamp
        return self._targets

    def _of(self, attempt: Attempt) -> SubmittedJob | None:
        """The submission that trains this attempt, as far as its target has answered."""
        self._load()
        submission = self._submissions.get(attempt.run.run_id)
        if submission is None or attempt.number < submission.attempt:
            return None
        seen = self._seen(submission)
        is_later = seen is not None and attempt.number > submission.attempt + seen.restarts
        return None if is_later else submission

    def _seen(self, submission: SubmittedJob) -> Seen | None:
        with contextlib.suppress(GanRuntimeError):
            return self._watch(submission.target)[1].seen(submission.token)
        return None

    def _cancel(self, run: RunDir, submission: SubmittedJob) -> None:
        """Cancels a job, also after the end of this process."""
        if not submission.is_cancelled:
            cancelled = submission.model_copy(update={"is_cancelled": True})
            with self._lock, contextlib.suppress(HomeError, OSError):  # its run is deleted
                if run.run_id in self._submissions:
                    self._submissions[run.run_id] = cancelled
                    submitted_job.store(run, cancelled)
        with contextlib.suppress(GanRuntimeError):  # the target is not in the settings
            self._watch(submission.target)[1].cancel(submission.token)

    def _submit(self, attempt: Attempt) -> Cause:
        options, watch = self._watch(attempt.target)
        run = attempt.run
        if earlier := self._submissions.get(run.run_id):
            seen = self._seen(earlier)
            if seen is None or seen.stage != "ended":  # its trainer has ended, the job not yet
                self._cancel(run, earlier)
                return cause(Reason.SUBMITTING, target=attempt.target)
            self._forget(run, earlier)
        present = [each for each in self._submissions.values() if each.target == attempt.target]
        if len(present) >= options.most_jobs:
            return cause(Reason.TARGET_FULL, target=attempt.target, jobs=options.most_jobs)
        token = token_of(run.run_id, attempt.number)
        submission = SubmittedJob(
            target=attempt.target,
            token=token,
            attempt=attempt.number,
            place=_place(options),
            log_bytes=run.log.stat().st_size if run.log.exists() else 0,
        )
        submitted_job.store(run, submission)
        write_whole(
            run.path / f"job-{attempt.number}.sh",
            watch.script(submitted_job.job_of(run, submission)),
        )
        self._submissions[run.run_id] = submission
        self._go_on(run, submission)
        return cause(Reason.SUBMITTING, target=attempt.target)

    def _go_on(self, run: RunDir, submission: SubmittedJob) -> None:
        """Submits a job without an id, which may be on the target all the same, or watches it."""
        _, watch = self._watch(submission.target)
        if submission.is_cancelled:
            watch.cancel(submission.token)
            return
        if submission.job:
            watch.watch(submission.token)
            return

        def answered(answer: Submitted) -> None:
            with self._lock:
                present = self._submissions.get(run.run_id)
                if present is not None and present.token == submission.token:
                    known = present.model_copy(
                        update={"job": answer.job, "refusal": answer.refusal}
                    )
                    self._submissions[run.run_id] = known
                    with contextlib.suppress(HomeError, OSError):  # the token finds it as well
                        submitted_job.store(run, known)

        watch.submit(submitted_job.job_of(run, submission), answered)

    def _forget(self, run: RunDir, submission: SubmittedJob) -> None:
        seen = self._seen(submission)
        ended = submission.model_copy(
            update={
                "is_over": True,
                "job": seen.job if seen is not None and seen.job else submission.job,
                "nodes": seen.nodes if seen is not None else "",
            }
        )
        with self._lock, contextlib.suppress(GanRuntimeError, OSError):
            self._submissions.pop(run.run_id, None)
            self._considered.pop(run.run_id, None)
            self._stops = {key: at for key, at in self._stops.items() if key[0] != run.run_id}
            submitted_job.store(run, ended)
            self._watch(submission.target)[1].forget(submission.token)


def _place(options: AnyTarget) -> tuple[str, str, str]:
    return options.kind, options.host, getattr(options, "home", "")
