"""Runs on a target, by each answer that a target can give. The target is a fake with the words of
Slurm; tests/full/targets has a real one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from gan_runtime.base.slurm import TIME_LIMIT
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.identity import SILENCE_SECONDS
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.run_folder import RunDir
from gan_runtime.records.states import Reason, StateTimer, cause
from gan_runtime.store import queries
from gan_runtime.supervision import queue, target_watch, trash
from gan_runtime.supervision.starter_router import StarterRouter
from gan_runtime.supervision.starters import Starter
from gan_runtime.supervision.submitted_job import job_of
from gan_runtime.supervision.supervisor import LEAVING_SECONDS
from gan_runtime.supervision.target_starter import FINAL_LINE_SECONDS, TargetStarter
from gan_runtime.supervision.target_watch import ABSENT_SECONDS, TargetWatch
from gan_runtime.targets import configuration, slurm
from gan_runtime.targets.configuration import (
    AnyTarget,
    KubernetesTarget,
    QueryPace,
    SlurmTarget,
)
from gan_runtime.targets.target import NoAnswerError, Offer, Seen, Submitted, TargetJob
from tests.support.toy_owner import Owner
from tests.support.trainers import toys

NewRun = Callable[..., RunDir]
PENDING = Seen("waiting", "PENDING", slurm.in_words("Resources"))
RUNNING = Seen("running", "RUNNING", nodes="n1")


@dataclass
class FakeTarget:
    """Answers as told. `jobs`: token → state; `is_silent`: no call is answered."""

    options: SlurmTarget = field(default_factory=SlurmTarget)
    jobs: dict[str, Seen] = field(default_factory=dict)
    submitted: list[TargetJob] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    refusal: str = ""
    is_silent: bool = False

    def offer(self) -> Offer:
        return Offer(("partition main",))

    def set_up(self) -> Offer:
        return Offer()

    def script(self, job: TargetJob) -> str:
        return slurm.script(job, self.options)

    def submit(self, job: TargetJob) -> Submitted:
        self._answer()
        if self.refusal:
            return Submitted(refusal=self.refusal)
        if job.token not in self.jobs:
            self.submitted.append(job)
            self.jobs[job.token] = replace(PENDING, job=str(len(self.submitted)))
        return Submitted(self.jobs[job.token].job)

    def observe(self, tokens: Sequence[str]) -> Mapping[str, Seen]:
        self._answer()
        return {token: self.jobs[token] for token in tokens if token in self.jobs}

    def cancel(self, token: str) -> None:
        self._answer()
        self.cancelled.append(token)

    def _answer(self) -> None:
        if self.is_silent:
            raise NoAnswerError("`squeue` failed: Unable to contact slurm controller")


class Cluster:
    """An owner of a home with the fake target "atlas", whose thread the test runs."""

    def __init__(self, home: Home) -> None:
        self._home, self.target = home, FakeTarget()
        self.begin_owner()

    def begin_owner(self) -> None:
        def make(timer: StateTimer) -> Starter:
            self.starter = TargetStarter(
                self._home,
                timer,
                self._made,
                lambda: self.owner.clock(),
                has_threads=False,
            )
            return StarterRouter(toys(timer), self.starter)

        self.owner: Owner = Owner(self._home, make)

    def _made(self, options: AnyTarget, _: Home) -> FakeTarget:
        assert isinstance(options, SlurmTarget)
        self.target.options = options
        return self.target

    def turn(self, seconds: float = 1.0) -> None:
        """One query of the target, and what the owner makes of it."""
        self.starter.ask_all()
        self.owner.after(seconds)

    def see(self, run: RunDir, seen: Seen) -> None:
        """The run's job is in this state from now on."""
        token = [token for token in self.target.jobs if f"-{run.run_id}-" in token][-1]
        self.target.jobs[token] = replace(seen, job=self.target.jobs[token].job)
        self.turn()
        self.turn()

    def shown(self, run: RunDir) -> tuple[str, int, str]:
        row = queries.run(self.owner.store, run.run_id)
        return row.status, row.attempt, row.note


@pytest.fixture
def cluster(home: Home) -> Cluster:
    configuration.add(home, "atlas", SlurmTarget(most_jobs=2))
    return Cluster(home)


@pytest.fixture
def training(cluster: Cluster, new_run: NewRun) -> RunDir:
    """A run whose job runs and whose trainer has begun."""
    run = new_run("far-0001", target="atlas")
    cluster.turn()
    cluster.turn()
    cluster.see(run, RUNNING)
    says(run, "running")
    cluster.turn()
    assert cluster.shown(run)[0] == "running"
    return run


def says(run: RunDir, status: journal.Status, attempt: int = 1) -> None:
    """What the trainer writes."""
    change = StatusChange(status=status, reason="as the trainer says")
    journal.append(run.trainer_journal(), attempt, change)


def test_a_run_waits_with_the_targets_reason_until_its_job_runs(
    cluster: Cluster, new_run: NewRun
) -> None:
    run, local = new_run("far-0001", target="atlas"), new_run("near-0001")
    cluster.turn()
    assert cluster.shown(run)[::2] == ("queued", "submitted to atlas")
    cluster.turn()
    cluster.turn()
    assert cluster.shown(run)[::2] == ("queued", "job 1 on atlas waits for free nodes")
    assert cluster.shown(local)[0] != "queued", "this host is free"
    cluster.see(run, replace(PENDING, reason=slurm.in_words("PartitionNodeLimit")))
    assert "cannot start unless it is changed (PartitionNodeLimit)" in cluster.shown(run)[2]
    cluster.see(run, replace(PENDING, reason=slurm.in_words("QOSMaxJobsPerUserLimit")))
    assert "waits for a limit of your account (QOSMaxJobs" in cluster.shown(run)[2]
    cluster.see(run, RUNNING)
    assert cluster.shown(run)[::2] == ("starting", "starting a trainer on n1")
    script = (run.path / "job-1.sh").read_text(encoding="utf-8")
    assert script == slurm.script(cluster.target.submitted[0], SlurmTarget(most_jobs=2))


def test_a_submission_is_soon_followed_by_a_query_whatever_the_pace(
    wait_until: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target_watch, "FIRST_SECONDS", 0.05)
    pace = QueryPace(poll_seconds=600.0, most_seconds=600.0, rest=0.0)
    watch = TargetWatch("atlas", FakeTarget(), pace, time.monotonic)
    job = TargetJob("gan-far-0001-1-abc", Path("/home/runs/far-0001"), 1, "cpu", 1, 0)
    watch.submit(job, lambda _: None)
    wait_until(lambda: watch.seen(job.token), "its state is read")
    rounds = watch.rounds
    watch.submit(replace(job, token="gan-far-0002-1-abc"), lambda _: None)
    wait_until(lambda: watch.seen("gan-far-0002-1-abc"), "its state is read too")
    assert watch.rounds <= rounds + 3, "one query soon, then at the pace of the target"
    watch.end()


def test_no_more_jobs_than_allowed_are_submitted(cluster: Cluster, new_run: NewRun) -> None:
    runs = [new_run(f"far-000{number}", number, target="atlas") for number in (1, 2, 3)]
    for _ in range(3):
        cluster.turn()
    assert len(cluster.target.submitted) == 2
    assert cluster.shown(runs[2])[2].startswith(
        "waiting: atlas has as many jobs of this home as allowed (2)"
    )


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        ("TIMEOUT", "lost"),
        ("NODE_FAIL", "lost"),
        ("PREEMPTED", "lost"),
        ("BOOT_FAIL", "lost"),
        ("COMPLETED", "lost"),
        ("CANCELLED", "stopped"),
        ("OUT_OF_MEMORY", "failed"),
        ("FAILED", "failed"),
        ("DEADLINE", "failed"),
    ],
)
def test_a_job_that_ended_without_a_final_line_gives_the_run_its_state(
    cluster: Cluster, training: RunDir, state: str, shown: str
) -> None:
    cluster.see(training, Seen("ended", state))
    assert cluster.shown(training)[0] == "running", "the last lines may still arrive"
    cluster.turn(FINAL_LINE_SECONDS + 1)
    cluster.turn()
    status, attempt, note = cluster.shown(training)
    assert (status, attempt) == (shown, 1)
    assert "job 1" in note
    assert "atlas" in note


def test_a_job_whose_lines_are_all_here_ends_its_run_at_once(
    cluster: Cluster, training: RunDir
) -> None:
    cluster.see(training, Seen("ended", "KILLED", is_complete=True))
    assert cluster.shown(training)[0] == "lost"


def test_the_trainers_own_end_counts_before_the_jobs(cluster: Cluster, training: RunDir) -> None:
    says(training, "finished")
    cluster.see(training, Seen("ended", "FAILED"))
    cluster.turn(FINAL_LINE_SECONDS + 1)
    assert cluster.shown(training)[0] == "finished"


@pytest.mark.parametrize("has_saved", [True, False])
def test_a_requeued_job_is_the_next_attempt(
    cluster: Cluster, training: RunDir, has_saved: bool
) -> None:
    if has_saved:
        says(training, "stopped")
    cluster.see(training, replace(PENDING, reason=slurm.in_words("BeginTime"), restarts=1))
    assert cluster.shown(training)[:2] == ("queued", 2)
    cluster.see(training, replace(RUNNING, restarts=1))
    assert cluster.shown(training)[:2] == ("starting", 2)
    says(training, "running", 2)
    cluster.turn()
    assert cluster.shown(training)[:2] == ("running", 2)
    cluster.turn(LEAVING_SECONDS + 1)
    cluster.turn()
    assert cluster.target.cancelled == []
    assert len(cluster.target.submitted) == 1


def test_a_restart_that_the_target_has_not_shown_yet_is_no_loss(
    cluster: Cluster, training: RunDir
) -> None:
    cluster.target.is_silent = True
    says(training, "stopped")
    says(training, "running", 2)
    cluster.turn(SILENCE_SECONDS)
    cluster.turn()
    assert cluster.shown(training)[:2] == ("running", 2)


def test_a_resumed_run_is_submitted_again_once_its_last_job_has_ended(
    cluster: Cluster, training: RunDir, home: Home
) -> None:
    says(training, "stopped")
    cluster.turn()
    queue.resume(home, training, {}, "test")
    cluster.turn()
    cluster.turn()
    assert len(cluster.target.submitted) == 1
    assert cluster.shown(training)[:2] == ("queued", 2)
    cluster.see(training, Seen("ended", "COMPLETED"))
    cluster.turn()
    assert [job.attempt for job in cluster.target.submitted] == [1, 2]
    assert cluster.shown(training)[:2] == ("queued", 2)


def test_a_run_stopped_by_its_time_limit_is_submitted_again_as_often_as_needed(
    cluster: Cluster, new_run: NewRun
) -> None:
    run = new_run("far-0001", target="atlas", resume_lost="yes")
    for attempt in range(1, 6):
        cluster.turn()
        cluster.turn()
        cluster.see(run, RUNNING)
        why = cause(Reason.STOP_AT_TIME_LIMIT, step=attempt, steps=1_000)
        journal.append(run.trainer_journal(), attempt, StatusChange.of("stopped", why))
        cluster.see(run, Seen("ended", "COMPLETED"))
    cluster.turn()
    assert [job.attempt for job in cluster.target.submitted] == [1, 2, 3, 4, 5, 6]


def test_a_target_says_what_it_has_without_being_waited_for(cluster: Cluster) -> None:
    assert cluster.starter.offer("atlas") is None
    cluster.turn()
    assert cluster.starter.offer("atlas") == Offer(("partition main",))


def test_silence_changes_no_state(cluster: Cluster, training: RunDir) -> None:
    cluster.target.is_silent = True
    cluster.turn(3 * ABSENT_SECONDS)
    cluster.turn(3 * ABSENT_SECONDS)
    assert cluster.shown(training)[0] == "running"
    assert "atlas has not answered since" in cluster.starter.trouble("atlas")
    cluster.target.is_silent = False
    cluster.turn()
    assert cluster.shown(training)[0] == "running"
    assert not cluster.starter.trouble("atlas")


def test_a_job_that_good_answers_lack_for_long_has_ended(
    cluster: Cluster, training: RunDir
) -> None:
    cluster.target.jobs.clear()
    cluster.turn(ABSENT_SECONDS - 1)
    assert cluster.shown(training)[0] == "running"
    cluster.turn(2)
    cluster.turn()
    cluster.turn(FINAL_LINE_SECONDS + 1)
    assert cluster.shown(training)[0] == "lost"


def test_a_refused_job_fails_its_run_with_the_targets_sentence(
    cluster: Cluster, new_run: NewRun
) -> None:
    cluster.target.refusal = "sbatch: error: invalid partition specified: gpuu"
    run = new_run("far-0001", target="atlas")
    for _ in range(3):
        cluster.turn()
    assert cluster.shown(run)[::2] == (
        "failed",
        "atlas refused the job: sbatch: error: invalid partition specified: gpuu",
    )


@pytest.mark.parametrize("is_submitted", [True, False])
def test_an_owner_killed_before_it_knew_the_id_submits_no_second_job(
    cluster: Cluster, new_run: NewRun, is_submitted: bool
) -> None:
    run = new_run("far-0001", target="atlas")
    cluster.owner.tick()  # writes target.json; the thread has not run
    if is_submitted:
        known = cluster.starter.job_of(run)
        assert known is not None
        cluster.target.submit(job_of(run, known.submission))
    cluster.begin_owner()
    cluster.turn()
    cluster.turn()
    assert len(cluster.target.submitted) == 1
    cluster.see(run, RUNNING)
    assert cluster.shown(run)[0] == "starting"


def test_a_run_taken_from_the_queue_cancels_its_job(cluster: Cluster, new_run: NewRun) -> None:
    run = new_run("far-0001", target="atlas")
    cluster.turn()
    cluster.turn()
    run.request_stop("test")
    cluster.turn()
    cluster.turn()
    assert cluster.shown(run)[0] == "stopped"
    assert cluster.target.cancelled[:1] == list(cluster.target.jobs)


def test_a_cancellation_outlives_the_owner(cluster: Cluster, new_run: NewRun) -> None:
    run = new_run("far-0001", target="atlas")
    cluster.turn()
    cluster.turn()
    cluster.target.is_silent = True
    run.request_stop("test")
    cluster.turn()
    assert cluster.shown(run)[0] == "stopped"
    assert cluster.target.cancelled == []
    cluster.begin_owner()
    cluster.target.is_silent = False
    cluster.turn()
    cluster.turn()
    assert cluster.target.cancelled[:1] == list(cluster.target.jobs)
    assert len(cluster.target.submitted) == 1


def test_a_submission_of_a_run_that_has_ended_meanwhile_is_not_repeated(
    cluster: Cluster, new_run: NewRun
) -> None:
    run = new_run("far-0001", target="atlas")
    cluster.owner.tick()
    journal.append(run.supervisor_journal, 1, StatusChange(status="stopped", reason="by a user"))
    cluster.begin_owner()
    cluster.turn()
    cluster.turn()
    assert cluster.target.submitted == []


def test_a_process_that_does_not_own_the_home_makes_no_calls(
    cluster: Cluster, home: Home, new_run: NewRun
) -> None:
    new_run("far-0001", target="atlas")
    cluster.owner.tick()
    other = TargetStarter(home, StateTimer(), lambda *_: cluster.target, has_threads=False)
    other.ask_all()
    assert cluster.target.submitted == []


@pytest.mark.parametrize("asker", ["user", TIME_LIMIT])
def test_only_a_users_stop_makes_a_timed_out_job_a_stopped_run(
    cluster: Cluster, training: RunDir, asker: str
) -> None:
    training.request_stop(asker)
    cluster.turn(30.0)
    cluster.see(training, Seen("ended", "TIMEOUT"))
    cluster.turn(FINAL_LINE_SECONDS + 1)
    cluster.turn()
    assert cluster.shown(training)[0] == ("lost" if asker == TIME_LIMIT else "stopped")


def test_a_stop_that_the_target_has_not_heard_of_has_no_limit(
    cluster: Cluster, training: RunDir
) -> None:
    cluster.target.is_silent = True
    training.request_stop("test")
    for _ in range(3):
        cluster.turn(100.0)
    cluster.target.is_silent = False
    for _ in range(3):
        cluster.turn()
    assert cluster.target.cancelled == [], "it has the whole time to save"
    cluster.turn(100.0)
    cluster.turn()
    assert cluster.target.cancelled != []


def test_a_submission_that_fails_delays_no_state_of_other_jobs(
    cluster: Cluster, training: RunDir, new_run: NewRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def uncertain(_: TargetJob) -> Submitted:
        raise NoAnswerError("sbatch: error: Socket timed out")

    monkeypatch.setattr(cluster.target, "submit", uncertain)
    new_run("far-0002", 1.0, target="atlas")
    cluster.turn()
    cluster.see(training, Seen("ended", "OUT_OF_MEMORY", is_complete=True))
    assert cluster.shown(training)[0] == "failed"


def moves_once_its_job_has_ended(cluster: Cluster, run: RunDir) -> None:
    """The target is asked on the host of the job until that has ended, then on "other"."""
    assert cluster.target.options.host == ""
    says(run, "finished")
    cluster.see(run, Seen("ended", "COMPLETED"))
    cluster.turn()
    cluster.starter.trouble("atlas")
    assert cluster.target.options.host == "other"


def test_jobs_are_asked_of_their_host_while_the_settings_name_another(
    cluster: Cluster, home: Home, training: RunDir
) -> None:
    configuration.add(home, "atlas", SlurmTarget(host="other", most_jobs=2))
    cluster.turn()
    moves_once_its_job_has_ended(cluster, training)


def test_jobs_are_asked_of_their_kind_of_target_while_the_settings_name_another(
    cluster: Cluster, home: Home, training: RunDir
) -> None:
    configuration.add(
        home, "atlas", KubernetesTarget(kind="kubernetes", image="gan:1", claim="runs")
    )
    cluster.turn(ABSENT_SECONDS + 1.0)
    cluster.turn()
    assert cluster.shown(training)[0] == "running"
    assert cluster.target.options.kind == "slurm"


def test_a_new_owner_asks_for_jobs_where_they_were_submitted(
    cluster: Cluster, home: Home, training: RunDir
) -> None:
    configuration.add(home, "atlas", SlurmTarget(host="other", most_jobs=2))
    cluster.begin_owner()
    assert cluster.starter.offer("atlas") is None, "a page asks before the first tick"
    assert cluster.target.options.host == "other"
    cluster.turn()
    moves_once_its_job_has_ended(cluster, training)


def test_the_stop_of_a_time_limit_is_given_its_two_minutes(
    cluster: Cluster, training: RunDir
) -> None:
    training.request_stop(TIME_LIMIT)
    cluster.turn()
    cluster.turn(119.0)
    cluster.turn()
    assert cluster.target.cancelled == []


def test_changed_settings_count_for_the_next_job(
    cluster: Cluster, home: Home, new_run: NewRun
) -> None:
    first = new_run("far-0001", target="atlas")
    cluster.turn()
    configuration.add(home, "atlas", SlurmTarget(partition="long"))
    second = new_run("far-0002", 1.0, target="atlas")
    cluster.turn()
    scripts = [(run.path / "job-1.sh").read_text(encoding="utf-8") for run in (first, second)]
    assert ["--partition=long" in script for script in scripts] == [False, True]


def test_a_run_of_a_target_that_is_removed_is_lost_once_its_journal_is_silent(
    cluster: Cluster, home: Home, training: RunDir
) -> None:
    home.targets.unlink()
    cluster.begin_owner()
    cluster.turn()
    assert cluster.shown(training)[0] == "running"
    assert cluster.starter.trouble("atlas") == "atlas is not in targets.toml"
    cluster.turn(SILENCE_SECONDS + 1)
    cluster.turn()
    assert cluster.shown(training)[0] == "lost"


def test_deleting_a_waiting_run_cancels_its_job(
    cluster: Cluster, new_run: NewRun, home: Home
) -> None:
    run = new_run("far-0001", target="atlas")
    cluster.turn()
    cluster.turn()
    trash.put(run, "test")
    cluster.turn()
    cluster.turn()
    assert cluster.target.cancelled[:1] == list(cluster.target.jobs)
    assert not home.run_dirs()


def test_deleting_a_waiting_run_without_an_owner_cancels_its_job_once_there_is_one(
    cluster: Cluster, new_run: NewRun
) -> None:
    run = new_run("far-0001", target="atlas")
    cluster.turn()
    cluster.turn()
    trash.put(run, "test")
    for _ in range(2):
        cluster.begin_owner()
        cluster.turn()
        cluster.turn()
    assert cluster.target.cancelled == list(cluster.target.jobs)


def test_a_trainer_that_does_not_stop_has_its_job_cancelled(
    cluster: Cluster, training: RunDir
) -> None:
    training.request_stop("test")
    for _ in range(3):
        cluster.turn()
    assert cluster.target.cancelled == []
    cluster.turn(100.0)
    cluster.turn()
    assert cluster.target.cancelled[:1] == list(cluster.target.jobs)
    cluster.see(training, Seen("ended", "CANCELLED"))
    cluster.turn(FINAL_LINE_SECONDS + 1)
    cluster.turn()
    assert cluster.shown(training)[0] == "stopped"
