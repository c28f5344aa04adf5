"""The supervisor with real trainer processes: start, queue, stop, resume, loss, and taking over after a killed owner."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from gan_runtime import commands, journal
from gan_runtime.errors import HomeInUseError, RunStateError
from gan_runtime.home import REPOSITORY, Home
from gan_runtime.hosts import Host
from gan_runtime.journal import StatusChange
from gan_runtime.rundir import RunDir, write_json
from gan_runtime.runtime import Runtime
from gan_runtime.spec import RunSpec
from gan_runtime.store import queries
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store
from gan_runtime.supervisor import Supervisor
from gan_runtime.training import checkpoints
from tests.trainers import end_trainers

STEPS_PER_EPOCH = 28  # 1,797 digits in batches of 64
SHORT = {"workload": "mlp_gan", "replicas": 2, "batch_size_global": 64, "epochs": 3, "precision": "float32"}
LONG = {**SHORT, "epochs": 2_000, "steps_per_loop": 2}

Wait = Callable[..., Any]


@pytest.fixture
def runtime(home: Home, host: Host, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runtime]:
    """The owner of the home. Its host is a stated one; its trainers are real and ended with the test."""
    monkeypatch.setattr("gan_runtime.hosts.probe", lambda: host)
    opened = Runtime.open(home)
    yield opened
    end_trainers(home)
    opened.close()


def status(runtime: Runtime, run: RunDir) -> str:
    return queries.run(runtime.store, run.run_id).status


def step(runtime: Runtime, run: RunDir) -> int:
    return queries.progress(runtime.store, run.run_id).step


def pid(run: RunDir) -> int:
    identity = run.process()
    assert identity is not None
    return int(identity["pid"])


def every_step_once(runtime: Runtime, run: RunDir, last_step: int) -> bool:
    counted = runtime.store.rows(
        "SELECT count(*), count(DISTINCT step), min(step), max(step) FROM scalars WHERE run_id = ? AND metric = 'loss_generator'",
        [run.run_id],
    )
    return counted == [(last_step, last_step, 1, last_step)]


def test_a_run_waits_until_the_accelerator_is_free_and_every_step_of_it_is_stored_once(
    runtime: Runtime, wait_until: Wait
) -> None:
    first = runtime.submit(RunSpec.parse(LONG))
    second = runtime.submit(RunSpec.parse(SHORT), "quick")
    wait_until(lambda: status(runtime, first) == "running", "the first run trains")
    assert (second.run_id, status(runtime, second)) == ("quick-0002", "queued")
    runtime.stop(first.run_id)
    wait_until(lambda: status(runtime, second) in ("running", "finished"), "the second run starts")
    assert status(runtime, first) == "stopped"
    assert not psutil.pid_exists(pid(first)) or psutil.Process(pid(first)).status() == psutil.STATUS_ZOMBIE
    wait_until(lambda: status(runtime, second) == "finished", "the second run finishes")
    assert every_step_once(runtime, second, 3 * STEPS_PER_EPOCH)
    kinds = list(queries.events(runtime.store, second.run_id)["kind"])
    assert kinds == ["queued", "starting", "compiling", "running", "finished"]


def test_a_stopped_run_is_resumed_without_a_seam_and_only_an_ended_one_can_be_deleted(runtime: Runtime, wait_until: Wait) -> None:
    run = runtime.submit(RunSpec.parse({**SHORT, "epochs": 12, "steps_per_loop": 2}))
    wait_until(lambda: step(runtime, run) > 5, "the run trains")
    with pytest.raises(RunStateError, match="stop it first"):
        runtime.delete(run.run_id)
    runtime.rename(run.run_id, "my first run")
    assert queries.run(runtime.store, run.run_id).name == "my first run"
    runtime.stop(run.run_id)
    wait_until(lambda: status(runtime, run) == "stopped", "the run stops")
    saved = checkpoints.load_newest(run.checkpoints)
    assert saved is not None
    assert saved.step == step(runtime, run)

    runtime.resume(run.run_id)
    wait_until(lambda: status(runtime, run) == "finished", "the resumed run finishes")
    assert queries.run(runtime.store, run.run_id).attempt == 2
    assert every_step_once(runtime, run, 12 * STEPS_PER_EPOCH)
    with pytest.raises(RunStateError, match="only a stopped, failed or lost run can be resumed"):
        runtime.resume(run.run_id)
    runtime.delete(run.run_id)
    assert queries.runs(runtime.store) == []
    assert runtime.store.rows("SELECT count(*) FROM scalars") == [(0,)]
    assert not run.path.exists()


def test_a_killed_trainer_is_lost_and_can_be_resumed(runtime: Runtime, wait_until: Wait) -> None:
    run = runtime.submit(RunSpec.parse({**SHORT, "epochs": 12, "steps_per_loop": 2}))
    wait_until(lambda: step(runtime, run) > 2 * STEPS_PER_EPOCH, "the run has a checkpoint")
    os.killpg(pid(run), signal.SIGKILL)
    wait_until(lambda: status(runtime, run) == "lost", "the loss is noticed", 20)
    assert "killed by signal 9" in queries.run(runtime.store, run.run_id).note
    runtime.resume(run.run_id)
    wait_until(lambda: status(runtime, run) == "finished", "the resumed run finishes")
    assert every_step_once(runtime, run, 12 * STEPS_PER_EPOCH)


def test_a_trainer_that_does_not_react_is_killed_after_the_grace_period(
    home: Home, host: Host, wait_until: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gan_runtime.hosts.probe", lambda: host)
    runtime = Runtime.open(home, grace_seconds=1.0)
    try:
        run = runtime.submit(RunSpec.parse(LONG))
        wait_until(lambda: status(runtime, run) == "running", "the run trains")
        os.kill(pid(run), signal.SIGSTOP)
        runtime.stop(run.run_id)
        wait_until(lambda: status(runtime, run) == "stopped", "the run is killed", 20)
        assert "ended without saving" in queries.run(runtime.store, run.run_id).note
    finally:
        end_trainers(home)
        runtime.close()


def test_a_waiting_run_is_taken_from_the_queue_and_the_queue_can_be_reordered(runtime: Runtime) -> None:
    training = runtime.submit(RunSpec.parse(LONG))
    waiting = [runtime.submit(RunSpec.parse(SHORT)).run_id for _ in range(3)]
    assert [row.run_id for row in queries.queue(runtime.store)] == waiting
    runtime.swap_in_queue([waiting[0]], [waiting[1]])
    assert [row.run_id for row in queries.queue(runtime.store)] == [waiting[1], waiting[0], waiting[2]]
    runtime.stop(waiting[0])
    assert [row.run_id for row in queries.queue(runtime.store)] == [waiting[1], waiting[2]]
    assert queries.run(runtime.store, waiting[0]).status == "stopped"
    assert status(runtime, training) in ("starting", "compiling", "running"), "the first run was not disturbed"


OWNER = """
import sys, threading
from pathlib import Path
from gan_runtime.home import Home
from gan_runtime.runtime import Runtime
runtime = Runtime.open(Home(Path(sys.argv[1])))
print("open", flush=True)
threading.Event().wait()
"""


def test_a_training_goes_on_while_its_owner_is_killed_and_another_one_closes(home: Home, host: Host, wait_until: Wait) -> None:
    run = commands.submit(home, RunSpec.parse(LONG), host)
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(home.path)], env=environment, stdout=subprocess.PIPE)
    try:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"open\n"
        with pytest.raises(HomeInUseError, match=f"in use by process {owner.pid}"):
            Runtime.open(home)
        wait_until(lambda: run.trainer_journal().exists() and b'"kind":"scalars"' in run.trainer_journal().read_bytes(), "steps")
    finally:
        owner.kill()
        owner.wait()
    trainer = pid(run)
    for _ in range(2):  # owners: the first one is closed again while the run trains
        runtime = Runtime.open(home)
        try:
            assert status(runtime, run) == "running"
            seen = step(runtime, run)
            wait_until(lambda runtime=runtime, seen=seen: step(runtime, run) > seen, "the run trains on")
        finally:
            runtime.close()
    runtime = Runtime.open(home)
    try:
        runtime.stop(run.run_id)
        wait_until(lambda: status(runtime, run) == "stopped", "the run stops for its new owner")
        assert (pid(run), queries.run(runtime.store, run.run_id).attempt) == (trainer, 1)
        assert every_step_once(runtime, run, step(runtime, run))
    finally:
        end_trainers(home)
        runtime.close()


def test_another_process_with_the_same_pid_is_not_taken_for_the_trainer(
    home: Home, new_run: Callable[..., RunDir], wait_until: Wait
) -> None:
    run = new_run("quick-0001")
    journal.append(run.supervisor_journal, 1, StatusChange(status="running", reason="training"))
    write_json(run.process_file, {"pid": os.getpid(), "started": psutil.Process().create_time() - 1000.0, "attempt": 1})
    runtime = Runtime.open(home)
    try:
        wait_until(lambda: status(runtime, run) == "lost", "the loss is noticed", 20)
    finally:
        runtime.close()


def test_a_run_that_ended_during_a_failed_tick_is_not_taken_for_lost(home: Home, new_run: Callable[..., RunDir]) -> None:
    """Its last event was taken in, but the tick failed at the journal of another run, such as one deleted meanwhile."""
    run, store = new_run("quick-0001"), Store()
    journal.append(run.trainer_journal(), 1, StatusChange(status="running", reason="training"))
    write_json(run.process_file, {"pid": os.getpid(), "started": psutil.Process().create_time() - 1000.0, "attempt": 1})
    ingestor = Ingestor(home, store)
    ingestor.catch_up()
    supervisor = Supervisor(home, store, ingestor)
    journal.append(run.trainer_journal(), 1, StatusChange(status="finished", reason="all 3 epochs done"))
    ingestor.catch_up()  # what the failed tick still did
    supervisor.tick()
    assert queries.run(store, run.run_id).status == "finished"


def test_a_run_queued_during_a_failed_tick_is_acted_on_at_the_next(home: Home, new_run: Callable[..., RunDir]) -> None:
    store = Store()
    supervisor = Supervisor(home, store, Ingestor(home, store))
    waiting, unreadable = new_run("quick-0001"), new_run("quick-0002")
    for run in (waiting, unreadable):
        run.request_stop()
    unreadable.trainer_journal().mkdir()
    with pytest.raises(IsADirectoryError):
        supervisor.tick()
    unreadable.trainer_journal().rmdir()
    supervisor.tick()
    assert {row.run_id: row.status for row in queries.runs(store)} == {"quick-0001": "stopped", "quick-0002": "stopped"}


def test_a_trainer_without_data_fails_with_the_reason(
    runtime: Runtime, wait_until: Wait, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The images were there when the run was queued, and gone when it started."""
    first = runtime.submit(RunSpec.parse(LONG))
    monkeypatch.setattr("gan_runtime.data.loading.ensure", lambda _: runtime_data(60_000))
    monkeypatch.setenv("GAN_DATA_DIR", str(tmp_path))
    run = runtime.submit(RunSpec.parse({**SHORT, "dataset": "mnist"}))
    runtime.stop(first.run_id)
    wait_until(lambda: status(runtime, run) == "failed", "the run fails")
    assert "no mnist images are there" in queries.run(runtime.store, run.run_id).note


def runtime_data(images: int) -> Any:
    from gan_runtime.data.contract import Availability

    return Availability(ready=True, images=images, origin="test")
