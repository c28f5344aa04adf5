"""The supervisor with real trainer processes: start, queue, stop, resume, loss, and taking over after a killed owner."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from gan_runtime import processes
from gan_runtime.askers import operator
from gan_runtime.data import preparing
from gan_runtime.data.preparing import Asked
from gan_runtime.errors import HomeInUseError, RunStateError
from gan_runtime.home import REPOSITORY, Home
from gan_runtime.hosts import Host
from gan_runtime.records import journal, trained_on
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.rundir import RunDir, write_json
from gan_runtime.runtime import commands
from gan_runtime.runtime.runtime import Runtime
from gan_runtime.runtime.starters.local import INTRODUCTION_SECONDS, SILENCE_SECONDS
from gan_runtime.runtime.supervisor import Supervisor
from gan_runtime.spec import RunSpec
from gan_runtime.store import queries
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store
from gan_runtime.training import checkpoints
from tests.support import own_pictures
from tests.support.toy_engine import PACE_VARIABLE
from tests.support.trainers import end_trainers, toys

STEPS_PER_EPOCH = 5  # 40 rows in batches of 8
SHORT = {"workload": "mlp_gan", "replicas": 2, "batch_size_global": 8, "epochs": 3, "precision": "float32"}
LONG = {**SHORT, "epochs": 2_000, "steps_per_loop": 2}

Wait = Callable[..., Any]
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def runtime(home: Home, host: Host, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runtime]:
    """The owner of the home. Its host is a stated one; its trainers are processes with a toy for an engine, ended with the test.

    With TensorFlow: test_cli.py, test_workers.py, browser/test_main_job.py, and where a test says so.
    """
    monkeypatch.setattr("gan_runtime.hosts.probe", lambda: host)
    opened = Runtime.open(home, starter=toys())
    yield opened
    end_trainers(home)
    opened.close()


@pytest.fixture
def runtime_of_tensorflow(home: Home, host: Host, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runtime]:
    """The same with the trainers of every day."""
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


def test_a_stopped_run_is_resumed_without_a_seam_and_only_an_ended_one_can_be_deleted(
    runtime: Runtime, wait_until: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PACE_VARIABLE, "0.2")  # so that it is stopped long before its end
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

    monkeypatch.setenv(PACE_VARIABLE, "0")
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


def prepare(home: Home, name: str, rows: int) -> str:
    """A data set of grey pictures of 28 pixels; returns what tells its content."""
    source = home.path / f"{name}.zip"
    source.write_bytes(own_pictures.noise(rows))
    options = {"pixels": "28", "color": "grey"}
    manifest = preparing.prepare(home, Asked("pictures", name, source, options), lambda *_: None)
    assert manifest is not None
    return manifest.content


def test_a_killed_trainer_is_lost_and_can_be_resumed_with_the_same_data_only(
    runtime_of_tensorflow: Runtime, wait_until: Wait
) -> None:
    runtime = runtime_of_tensorflow
    steps_per_epoch, options = 28, {**SHORT, "batch_size_global": 64, "epochs": 12, "steps_per_loop": 2}
    content = prepare(runtime.home, "photos", steps_per_epoch * 64)
    run = runtime.submit(RunSpec.parse({**options, "dataset": "photos"}))
    wait_until(lambda: step(runtime, run) > 2 * steps_per_epoch, "the run has a checkpoint")
    os.killpg(pid(run), signal.SIGKILL)
    wait_until(lambda: status(runtime, run) == "lost", "the loss is noticed", 20)
    assert "killed by signal 9" in queries.run(runtime.store, run.run_id).note
    assert trained_on.content(run) == content
    photos, earlier = runtime.home.data / "photos", runtime.home.data / "earlier"
    photos.rename(earlier)
    other = prepare(runtime.home, "photos", 100)
    with pytest.raises(RunStateError) as refused:
        runtime.resume(run.run_id)
    assert str(refused.value) == (
        f"run {run.run_id} was trained on another data set photos (content {content[:16]}) than the one prepared under "
        f"this name now (content {other[:16]}): prepare the earlier one under this name again, or start a new run."
    )
    shutil.rmtree(photos)
    earlier.rename(photos)
    runtime.resume(run.run_id)
    wait_until(lambda: status(runtime, run) == "finished", "the resumed run finishes")
    assert every_step_once(runtime, run, 12 * steps_per_epoch)


def test_a_trainer_that_does_not_react_is_killed_after_the_grace_period(
    home: Home, host: Host, wait_until: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gan_runtime.hosts.probe", lambda: host)
    runtime = Runtime.open(home, grace_seconds=1.0, starter=toys())
    try:
        run = runtime.submit(RunSpec.parse(LONG))
        wait_until(run.process, "the trainer has introduced itself, and listens")
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
    runtime.move_in_queue(waiting[1], "up")
    assert [row.run_id for row in queries.queue(runtime.store)] == [waiting[1], waiting[0], waiting[2]]
    runtime.stop(waiting[0])
    assert [row.run_id for row in queries.queue(runtime.store)] == [waiting[1], waiting[2]]
    assert queries.run(runtime.store, waiting[0]).status == "stopped"
    assert status(runtime, training) in ("starting", "compiling", "running"), (
        "the first run was not disturbed"
    )


OWNER = """
import sys, threading
from pathlib import Path
from gan_runtime.home import Home
from gan_runtime.runtime.runtime import Runtime
from tests.support.trainers import toys
runtime = Runtime.open(Home(Path(sys.argv[1])), starter=toys())
print("open", flush=True)
threading.Event().wait()
"""


def test_a_training_goes_on_while_its_owner_is_killed_and_another_one_closes(
    home: Home, host: Host, wait_until: Wait
) -> None:
    run = commands.submit(home, RunSpec.parse(LONG), host, asker=operator("a test"))
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(home.path)], env=environment, stdout=subprocess.PIPE
    )
    try:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"open\n"
        with pytest.raises(HomeInUseError, match=f"in use by process {owner.pid}"):
            Runtime.open(home)
        wait_until(
            lambda: (
                run.trainer_journal().exists() and b'"kind":"scalars"' in run.trainer_journal().read_bytes()
            ),
            "steps",
        )
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
    write_json(
        run.process_file,
        {"pid": os.getpid(), "started": psutil.Process().create_time() - 1000.0, "attempt": 1},
    )
    runtime = Runtime.open(home)
    try:
        wait_until(lambda: status(runtime, run) == "lost", "the loss is noticed", 20)
    finally:
        runtime.close()


def test_a_run_that_ended_during_a_failed_tick_is_not_taken_for_lost(
    home: Home, new_run: Callable[..., RunDir]
) -> None:
    """Its last event was taken in, but the tick failed at the journal of another run, such as one deleted meanwhile."""
    run, store = new_run("quick-0001"), Store()
    journal.append(run.trainer_journal(), 1, StatusChange(status="running", reason="training"))
    write_json(
        run.process_file,
        {"pid": os.getpid(), "started": psutil.Process().create_time() - 1000.0, "attempt": 1},
    )
    ingestor = Ingestor(home, store)
    ingestor.catch_up()
    supervisor = Supervisor(home, store, ingestor)
    journal.append(run.trainer_journal(), 1, StatusChange(status="finished", reason="all 3 epochs done"))
    ingestor.catch_up()  # what the failed tick still did
    supervisor.tick()
    assert queries.run(store, run.run_id).status == "finished"


class FailsOnce(Ingestor):
    """Takes everything in and then fails, once, such as on a disk that was full for a moment."""

    has_failed = False

    def catch_up_news(self) -> int:
        news = super().catch_up_news()
        if not self.has_failed:
            self.has_failed = True
            raise OSError("No space left on device")
        return news


def test_a_run_queued_during_a_failed_tick_is_acted_on_at_the_next(
    home: Home, new_run: Callable[..., RunDir]
) -> None:
    store = Store()
    supervisor = Supervisor(home, store, FailsOnce(home, store))
    new_run("quick-0001").request_stop("a test")
    with pytest.raises(OSError, match="No space left"):
        supervisor.tick()
    supervisor.tick()
    assert queries.run(store, "quick-0001").status == "stopped"


def test_a_run_that_cannot_be_acted_on_does_not_stop_the_others(
    home: Home, new_run: Callable[..., RunDir]
) -> None:
    store = Store()
    ingestor = Ingestor(home, store)
    for run in (new_run("quick-0001"), new_run("quick-0002", seconds=1)):
        run.request_stop("a test")
    ingestor.catch_up()
    supervisor = Supervisor(home, store, ingestor)
    shutil.rmtree(home.runs / "quick-0001")  # after the supervisor has heard of it
    supervisor.tick()
    assert queries.run(store, "quick-0002").status == "stopped"


# ---- clocks -----------------------------------------------------------------------------------------------------------------


class Clock:
    """Seconds that pass when a test says so."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_clock_set_back_an_hour_neither_hides_an_end_nor_repeats_it(
    home: Home, new_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trainer wrote at noon; the owner's clock was then set back, so all that it writes seems older."""
    run, store = new_run("quick-0001", seconds=3_000), Store()
    journal.append(
        run.trainer_journal(),
        1,
        StatusChange(at=NOON + timedelta(minutes=55), status="running", reason="training"),
    )
    write_json(run.process_file, {"pid": os.getpid(), "started": 1.0, "attempt": 1})
    ingestor = Ingestor(home, store)
    ingestor.catch_up()
    monkeypatch.setattr("gan_runtime.records.entry.now", lambda: NOON)
    supervisor = Supervisor(home, store, ingestor)
    for _ in range(3):
        supervisor.tick()
    states = [(change.at, change.status) for _, change in journal.statuses(run.supervisor_journal)]
    assert states == [(NOON + timedelta(minutes=50), "queued"), (NOON, "lost")]
    assert (queries.run(store, run.run_id).status, commands.latest_status(run).status) == ("lost", "lost")


def test_the_time_to_introduce_itself_is_counted_by_the_owners_own_watch(
    home: Home, new_run: Callable[..., RunDir]
) -> None:
    run, store, clock = new_run("quick-0001"), Store(), Clock()
    later = journal.now() + timedelta(hours=1)  # as written by a clock that goes an hour ahead
    journal.append(
        run.supervisor_journal, 1, StatusChange(at=later, status="starting", reason="starting a trainer")
    )
    ingestor = Ingestor(home, store)
    ingestor.catch_up()
    supervisor = Supervisor(home, store, ingestor, clock=clock)
    supervisor.tick()
    clock.now = INTRODUCTION_SECONDS - 1
    supervisor.tick()
    assert queries.run(store, run.run_id).status == "starting"
    clock.now = INTRODUCTION_SECONDS + 1
    supervisor.tick()
    assert queries.run(store, run.run_id).status == "lost"


def test_a_run_on_a_cluster_is_lost_when_its_journals_stand_still_by_the_owners_own_watch(
    home: Home, new_run: Callable[..., RunDir]
) -> None:
    run, store, clock = new_run("quick-0001"), Store(), Clock()
    journal.append(run.trainer_journal(), 1, StatusChange(status="running", reason="training"))
    write_json(run.process_file, {"pid": 1, "started": 1.0, "attempt": 1, "cluster_host": "node-1"})
    os.utime(run.trainer_journal(), (1.0, 1.0))  # the clock of the file server says 1970
    os.utime(run.supervisor_journal, (1.0, 1.0))
    ingestor = Ingestor(home, store)
    ingestor.catch_up()
    supervisor = Supervisor(home, store, ingestor, clock=clock)
    for clock.now in (0.0, SILENCE_SECONDS - 1):
        supervisor.tick()
    assert queries.run(store, run.run_id).status == "running"
    journal.append(run.trainer_journal(), 1, journal.Phase(phase="probe", seconds=1.0))
    for clock.now in (SILENCE_SECONDS + 1, 2 * SILENCE_SECONDS):
        supervisor.tick()
    assert queries.run(store, run.run_id).status == "running"
    clock.now = 2 * SILENCE_SECONDS + 2
    supervisor.tick()
    assert queries.run(store, run.run_id).status == "lost"


# ---- what a power loss or a hand leaves in process.json ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    ["", "{", '{"pid": 1', "[]", "[1, 2]", "null", "7", "{}", '{"pid": 1, "started": 1.0}', "\0" * 80]
    + [
        f'{{"pid": {pid}, "started": 1.0, "attempt": 1}}'
        for pid in ('"x"', "-1", "0", "1e400", str(2**40), "true", "null")
    ]
    + [
        f'{{"pid": 1, "started": 1.0, "attempt": 1, "workers": {workers}}}'
        for workers in ('"x"', "[1]", '[{"pid": -1}]', "{}")
    ],
)
def test_a_process_file_that_says_nothing_is_as_good_as_none(
    home: Home, new_run: Callable[..., RunDir], content: str
) -> None:
    run, store, clock = new_run("quick-0001"), Store(), Clock()
    journal.append(run.trainer_journal(), 1, StatusChange(status="running", reason="training"))
    run.process_file.write_text(content, encoding="utf-8")
    assert run.process() is None
    ingestor = Ingestor(home, store)
    ingestor.catch_up()
    supervisor = Supervisor(home, store, ingestor, clock=clock)
    supervisor.tick()
    clock.now = INTRODUCTION_SECONDS + 1
    run.request_stop("a test")
    supervisor.tick()
    assert queries.run(store, run.run_id).status == "stopped"


def test_a_process_is_known_by_its_start_also_when_the_clock_was_set_meanwhile() -> None:
    own = processes.identity(os.getpid())
    assert processes.alive(own["pid"], own["started"] - 3_600.0, own["born"]) is not None
    assert processes.alive(own["pid"], own["started"], "another-boot:1") is None
    assert (
        processes.alive(own["pid"], own["started"]) is not None
    )  # a file from before `born` was written down


def test_a_trainer_without_data_fails_with_the_reason(
    home: Home,
    host: Host,
    wait_until: Wait,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    write_idx: Callable[[Path, np.ndarray], Path],
) -> None:
    """The images were there when the run was queued, and gone when the home had an owner to start it."""
    images = write_idx(tmp_path / "mnist" / "train-images-idx3-ubyte", np.zeros((128, 28, 28), np.uint8))
    monkeypatch.setenv("GAN_DATA_DIR", str(tmp_path))
    run = commands.submit(home, RunSpec.parse({**SHORT, "dataset": "mnist"}), host, asker=operator("a test"))
    images.unlink()
    runtime = Runtime.open(home)
    try:
        wait_until(lambda: status(runtime, run) == "failed", "the run fails")
        assert "no mnist images are there" in queries.run(runtime.store, run.run_id).note
    finally:
        end_trainers(home)
        runtime.close()
