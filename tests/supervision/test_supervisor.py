"""The supervisor with in-memory trainers: start, queue, stop, resume, loss.

One test kills a trainer process; tests/full/supervision uses many processes and kills owners.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import psutil
import pytest

from gan_runtime.base.errors import RunStateError
from gan_runtime.evaluation.training_requests import SWITCH
from gan_runtime.jobs import job_queue
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.record import operator
from gan_runtime.records.run_folder import RunDir, write_json
from gan_runtime.store import queries
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store
from gan_runtime.supervision.supervisor import Supervisor
from gan_runtime.training import checkpoints
from tests.support.asking import ask_of, ids
from tests.support.fake_trainers import STEPS_PER_EPOCH, FakeTrainers
from tests.support.toy_owner import Owner
from tests.support.trainers import end_trainers

NewRun = Callable[..., RunDir]
Wait = Callable[..., Any]
SOMEBODY = operator("a test")
TOY = {"workload": "mlp_gan", "batch_size_global": 8, "epochs": 3, "precision": "float32"}


def every_step_once(owner: Owner, run: RunDir, last_step: int) -> bool:
    counted = owner.store.rows(
        "SELECT count(*), count(DISTINCT step), min(step), max(step) FROM scalars WHERE run_id = ?"
        " AND metric = 'loss_generator'",
        [run.run_id],
    )
    return counted == [(last_step, last_step, 1, last_step)]


def test_run_waits_for_a_free_accelerator_and_stores_every_step_once(
    home: Home, new_run: NewRun
) -> None:
    first, second = new_run("quick-0001", seconds=1, **TOY), new_run("quick-0002", seconds=2, **TOY)
    trainers = FakeTrainers()
    owner = Owner(home, trainers.starter)
    owner.after(0.0)
    trainers.of(first).trains(to_step=2)
    owner.after(1.0)
    assert (owner.status(first), owner.status(second)) == ("running", "queued")
    trainers.of(first).says("stopped")
    owner.after(1.0)
    assert owner.status(first) == "stopped"
    assert trainers.run_ids() == [first.run_id], "its process holds the accelerator yet"
    trainers.of(first).dies("")
    owner.after(1.0)
    assert trainers.run_ids() == [first.run_id, second.run_id]
    for step in (4, 11, 15):
        trainers.of(second).trains(step)
        owner.after(1.0)
    trainers.of(second).finishes()
    owner.after(1.0)
    assert every_step_once(owner, second, 3 * STEPS_PER_EPOCH)
    kinds = list(queries.events(owner.store, second.run_id)["kind"])
    assert kinds == ["queued", "starting", "compiling", "running", "finished"]


def test_stopped_run_resumes_at_its_save_and_only_ended_runs_are_deletable(
    home: Home, new_run: NewRun
) -> None:
    run, trainers = new_run("quick-0001", **TOY), FakeTrainers()
    owner = Owner(home, trainers.starter)
    owner.after(0.0)
    trainers.of(run).trains(7)
    owner.after(1.0)
    with pytest.raises(RunStateError, match="stop it first"):
        ask_of(run, actor=SOMEBODY).delete(run.run_id)
    ask_of(run, actor=SOMEBODY).rename(run.run_id, "my first run")
    ask_of(run, actor=SOMEBODY).stop(run.run_id)  # while the home has no owner
    owner = Owner(home, trainers.starter)
    owner.after(0.0)
    row = queries.run(owner.store, run.run_id)
    assert (row.name, row.status) == ("my first run", "stopped")
    ask_of(run, actor=SOMEBODY).resume(run.run_id)
    owner.after(1.0)
    assert trainers.of(run).step == 7
    trainers.of(run).trains(15)
    trainers.of(run).finishes()
    owner.after(1.0)
    assert (owner.status(run), queries.run(owner.store, run.run_id).attempt) == ("finished", 2)
    assert every_step_once(owner, run, 15)
    with pytest.raises(RunStateError, match="only a stopped, failed or lost run can be resumed"):
        ask_of(run, actor=SOMEBODY).resume(run.run_id)
    ask_of(run, actor=SOMEBODY).delete(run.run_id)
    owner.after(1.0)
    assert queries.runs(owner.store) == []
    assert owner.store.rows("SELECT count(*) FROM scalars") == [(0,)]
    assert not run.path.exists()


def test_killed_trainer_is_lost_and_resumes_from_its_last_checkpoint(
    home: Home, new_run: NewRun, wait_until: Wait
) -> None:
    """Uses a real process and a real signal."""
    run, owner = new_run("quick-0001", **{**TOY, "epochs": 2_000}), Owner(home)

    def step() -> int:
        owner.after(0.0)
        return queries.progress(owner.store, run.run_id).step

    try:
        wait_until(lambda: step() > STEPS_PER_EPOCH, "it has a checkpoint")
        identity = run.process()
        assert identity is not None
        os.killpg(identity.pid, signal.SIGKILL)
        wait_until(
            lambda: owner.after(0.0) or owner.status(run) == "lost", "the loss is noticed", 20
        )
        assert "killed by signal 9" in owner.note(run)
        before = step()
        ask_of(run, actor=SOMEBODY).resume(run.run_id)
        wait_until(lambda: step() > before, "it goes on")
        ask_of(run, actor=SOMEBODY).stop(run.run_id)
        wait_until(lambda: owner.after(0.0) or owner.status(run) == "stopped", "it stops")
        assert every_step_once(owner, run, step())
        [begun] = [
            record.resume_step
            for record in journal.read_all(run.trainer_journal())
            if isinstance(record, journal.AttemptStart) and record.attempt == 2
        ]
        assert begun > 0
    finally:
        end_trainers(home)


def test_waiting_run_can_be_removed_and_the_queue_reordered(home: Home, new_run: NewRun) -> None:
    training, *waiting = [
        new_run(f"quick-000{number}", seconds=number, **TOY) for number in range(1, 5)
    ]
    trainers = FakeTrainers()
    owner = Owner(home, trainers.starter)

    def queue() -> list[str]:
        owner.after(0.0)
        return [row.run_id for row in queries.queue(owner.store)]

    first, second, third = (run.run_id for run in waiting)
    assert queue() == [first, second, third]
    ask_of(waiting[1]).move_in_queue(waiting[1].run_id, "up", ids([[run] for run in waiting]))
    assert queue() == [second, first, third]
    ask_of(waiting[0], actor=SOMEBODY).stop(waiting[0].run_id)
    assert queue() == [second, third]
    assert owner.status(waiting[0]) == "stopped"
    assert trainers.of(training).is_alive, "the first run was not disturbed"
    assert owner.status(training) == "starting"


def test_process_that_reuses_the_pid_is_not_the_trainer(home: Home, new_run: NewRun) -> None:
    run = new_run("quick-0001")
    journal.append(run.supervisor_journal, 1, StatusChange(status="running", reason="training"))
    write_json(
        run.process_file,
        {"pid": os.getpid(), "started": psutil.Process().create_time() - 1000.0, "attempt": 1},
    )
    owner = Owner(home)
    owner.after(0.0)
    assert owner.status(run) == "lost"


def test_run_that_ended_during_a_failed_tick_is_not_lost(home: Home, new_run: NewRun) -> None:
    """Its last event was ingested, but the tick failed at the journal of another run, such as one
    deleted meanwhile.
    """
    run, store = new_run("quick-0001"), Store()
    journal.append(run.trainer_journal(), 1, StatusChange(status="running", reason="training"))
    write_json(
        run.process_file,
        {"pid": os.getpid(), "started": psutil.Process().create_time() - 1000.0, "attempt": 1},
    )
    ingestor = Ingestor(home, store)
    ingestor.catch_up()
    supervisor = Supervisor(home, store, ingestor)
    journal.append(
        run.trainer_journal(), 1, StatusChange(status="finished", reason="all 3 epochs done")
    )
    ingestor.catch_up()  # done by the failed tick
    supervisor.tick()
    assert queries.run(store, run.run_id).status == "finished"


def test_run_that_ended_without_an_owner_is_measured_by_the_next(
    home: Home, new_run: NewRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner before left early in the training, when it had not yet requested the job."""
    monkeypatch.delenv(SWITCH)
    monkeypatch.setattr(job_queue, "start", lambda _: None)
    run, store = new_run("quick-0001"), Store()
    journal.append(run.trainer_journal(), 1, StatusChange(status="running", reason="training"))
    write_json(run.process_file, {"pid": os.getpid(), "started": 0.0, "attempt": 1})
    saved = {"weight": np.zeros(1, np.float32)}
    checkpoints.save(run.checkpoints, saved, 10, wall_s=1.0, retained=1)
    ingestor = Ingestor(home, store)
    ingestor.catch_up()
    ended = StatusChange(status="finished", reason="all 3 epochs done")
    journal.append(run.trainer_journal(), 1, ended)
    supervisor = Supervisor(home, store, ingestor)
    supervisor.tick()
    assert queries.run(store, run.run_id).status == "finished"
    [job] = job_queue.snapshots(home, "quality", run_id=run.run_id)
    assert job.request.asker == "training"


class FailsOnce(Ingestor):
    """Ingests everything and then fails once, as on a disk that is full for a moment."""

    has_failed = False

    def catch_up_news(self, at_once: bool = False) -> int:
        news = super().catch_up_news(at_once)
        if not self.has_failed:
            self.has_failed = True
            raise OSError("No space left on device")
        return news


def test_run_queued_during_a_failed_tick_is_handled_at_the_next(
    home: Home, new_run: NewRun
) -> None:
    store = Store()
    supervisor = Supervisor(home, store, FailsOnce(home, store))
    new_run("quick-0001").request_stop("a test")
    with pytest.raises(OSError, match="No space left"):
        supervisor.tick()
    supervisor.tick()
    assert queries.run(store, "quick-0001").status == "stopped"


def test_failure_on_one_run_does_not_stop_the_others(home: Home, new_run: NewRun) -> None:
    store = Store()
    ingestor = Ingestor(home, store)
    for run in (new_run("quick-0001"), new_run("quick-0002", seconds=1)):
        run.request_stop("a test")
    ingestor.catch_up()
    supervisor = Supervisor(home, store, ingestor)
    shutil.rmtree(home.runs / "quick-0001")  # after the supervisor has seen it
    supervisor.tick()
    assert queries.run(store, "quick-0002").status == "stopped"
