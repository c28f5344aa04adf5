"""A run whose trainer never started is requeued; one whose trainer may have started is lost.

tests/full/supervision/test_never_began.py kills owners at that moment.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from gan_runtime.records import identity, journal, processes
from gan_runtime.records.home import Home
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.run_folder import RunDir, TrainerProcess, latest_status
from gan_runtime.records.states import Reason, cause
from gan_runtime.store import queries
from gan_runtime.supervision import queue, recovery
from tests.support.toy_owner import Owner
from tests.support.trainers import end_trainers, idle

NewRun = Callable[..., RunDir]
TOY = {"workload": "mlp_gan", "batch_size_global": 8, "epochs": 3, "precision": "float32"}


@pytest.fixture
def owner_of_idle(home: Home) -> Iterator[Callable[[], Owner]]:
    """Creates an owner whose trainers are idle processes, killed after the test."""
    yield lambda: Owner(home, idle)
    end_trainers(home)


def is_said_to_start(run: RunDir, attempt: int = 1) -> None:
    """Leaves the run like an owner that is killed right after recording the start."""
    number = processes.take_start_lock(run, attempt, identity.boot())
    assert number is not None
    journal.append(
        run.supervisor_journal, attempt, StatusChange(status="starting", reason="a test")
    )
    os.close(number)


def states(run: RunDir) -> list[tuple[int, str]]:
    return [
        (change.attempt, change.status) for _, change in journal.statuses(run.supervisor_journal)
    ]


def test_run_whose_trainer_never_started_is_requeued_in_its_old_place(
    new_run: NewRun, owner_of_idle: Callable[[], Owner]
) -> None:
    run, later = new_run("quick-0001", seconds=1, **TOY), new_run("quick-0002", seconds=2, **TOY)
    is_said_to_start(run)
    owner = owner_of_idle()
    owner.at(0.0)
    assert states(run) == [(1, "queued"), (1, "starting"), (2, "queued"), (2, "starting")]
    assert cause(Reason.REQUEUED).sentence in list(
        queries.events(owner.store, run.run_id)["message"]
    )
    assert states(later) == [(1, "queued")], "its place is before that of a later run"


def _prints(run: RunDir) -> None:
    run.log.write_text("Illegal instruction\n", encoding="utf-8")


def _opens_its_journal(run: RunDir) -> None:
    journal.append(run.trainer_journal(1), 1, StatusChange(status="failed", reason="a test"))


def _introduces_itself_by_half(run: RunDir) -> None:
    run.process_file.write_text('{"pid": 1', encoding="utf-8")


def _of_another_machine(run: RunDir) -> None:
    here = identity.boot()
    run.start_lock.write_text(
        run.start_lock.read_text("utf-8").replace(here, "another-boot"), "utf-8"
    )


def _of_an_earlier_attempt(run: RunDir) -> None:
    run.start_lock.write_text(
        run.start_lock.read_text("utf-8").replace('"attempt":1', '"attempt":0'), "utf-8"
    )


def _without_a_lock(run: RunDir) -> None:
    run.start_lock.unlink()


def _with_a_torn_lock(run: RunDir) -> None:
    run.start_lock.write_bytes(run.start_lock.read_bytes()[:-9])


@pytest.mark.parametrize(
    "trace",
    [
        _prints,
        _opens_its_journal,
        _introduces_itself_by_half,
        _of_another_machine,
        _of_an_earlier_attempt,
        _without_a_lock,
        _with_a_torn_lock,
    ],
)
def test_run_with_traces_of_a_trainer_is_lost_and_not_restarted(
    home: Home, new_run: NewRun, trace: Callable[[RunDir], None]
) -> None:
    run = new_run("quick-0001")
    is_said_to_start(run)
    trace(run)
    owner = Owner(home)
    for seconds in (0.0, 14.0):
        owner.at(seconds)
    assert owner.status(run) in ("lost", "failed")
    assert latest_status(run).attempt == 1


def test_resumed_run_whose_trainer_never_started_is_requeued_in_its_place(
    new_run: NewRun, owner_of_idle: Callable[[], Owner]
) -> None:
    run = new_run("quick-0001", **TOY)
    _prints(run)
    journal.append(run.trainer_journal(), 1, StatusChange(status="failed", reason="a test"))
    run.write_process(TrainerProcess(pid=os.getpid(), started=1.0, attempt=1))
    journal.append(
        run.supervisor_journal, 2, StatusChange(status="queued", reason="resumed", queue_rank=7.0)
    )
    is_said_to_start(run, 2)
    owner_of_idle().at(0.0)
    waits = [
        change for _, change in journal.statuses(run.supervisor_journal) if change.attempt == 3
    ]
    assert [(change.status, change.queue_rank) for change in waits[:1]] == [("queued", 7.0)]


def test_run_stopped_before_its_trainer_started_is_stopped(home: Home, new_run: NewRun) -> None:
    run = new_run("quick-0001")
    is_said_to_start(run)
    run.request_stop("a test")
    owner = Owner(home)
    owner.at(0.0)
    assert (owner.status(run), owner.note(run)) == (
        "stopped",
        "removed from the queue before it started",
    )


def test_run_whose_starts_keep_failing_is_lost_after_three_requeues(
    home: Home, new_run: NewRun
) -> None:
    run = new_run("quick-0001")
    resumed = StatusChange(
        status="queued", reason="resumed", queue_rank=1.0, asker=recovery.RESUMER.name
    )
    journal.append(run.supervisor_journal, 1, resumed)
    for attempt in range(1, queue.MOST_REQUEUES + 1):
        is_said_to_start(run, attempt)
        assert queue.requeue(run, attempt)
    is_said_to_start(run, queue.MOST_REQUEUES + 1)
    assert recovery.times_resumed(run) == 1, (
        "these count neither as automatic resumes nor as a person's"
    )
    owner = Owner(home)
    owner.at(0.0)
    assert owner.status(run) == "lost"
