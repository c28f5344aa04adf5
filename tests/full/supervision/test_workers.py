"""Several workers in real processes: agreement with one process, stop, loss, resume, and
stragglers.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import psutil
import pytest

from gan_runtime.base.cluster import free_addresses, tf_config
from gan_runtime.commands.runtime import Runtime
from gan_runtime.data import loading
from gan_runtime.engines.contract import Arrays
from gan_runtime.engines.task import data_for_workload, workload_of
from gan_runtime.hardware.hosts import Host
from gan_runtime.records import journal
from gan_runtime.records.home import REPOSITORY, Home
from gan_runtime.records.run_folder import RunDir, write_json
from gan_runtime.spec import RunSpec
from gan_runtime.store import queries
from gan_runtime.training import checkpoints
from gan_runtime.training.workers import STRAGGLER_FACTOR
from tests.support import large_sets
from tests.support.engines.small_engines import keep_alive
from tests.support.step_losses import losses
from tests.support.toy_engine import PACE_VARIABLE
from tests.support.trainers import toys

Wait = Callable[..., Any]
STEPS_PER_EPOCH = 14  # 1,797 digits in batches of 128
TOY = {"workload": "mlp_gan", "batch_size_global": 128, "precision": "float32", "steps_per_loop": 2}
PAIR = {**TOY, "workers": 2}
# Adam divides by the size of a gradient: where it is nearly zero, the last bit of a sum determines
# a whole step.
SGD = {
    "optimizer": "sgd",
    "momentum": 0.5,
    "learning_rate_generator": 0.05,
    "learning_rate_discriminator": 0.05,
}
LONG = {**PAIR, "epochs": 2_000}
END_SECONDS = 30.0  # within which all workers must end after one is gone


@pytest.fixture
def runtime(home: Home, host: Host, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runtime]:
    """The owner of the home on a fixed host; its workers are real and end with the test."""
    monkeypatch.setattr("gan_runtime.hardware.hosts.probe", lambda: host)
    opened = Runtime.open(home)
    yield opened
    for run in home.run_dirs():
        for process in living(run):
            process.kill()
    opened.close()


def living(run: RunDir) -> list[psutil.Process]:
    """Returns the launcher and the workers that have not ended."""
    identity = run.process()
    assert identity is not None
    pids = [identity.pid, *(worker.pid for worker in identity.workers)]
    processes = [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]
    return [process for process in processes if process.status() != psutil.STATUS_ZOMBIE]


def worker_pid(run: RunDir, rank: int) -> int:
    identity = run.process()
    assert identity is not None
    return next(worker.pid for worker in identity.workers if worker.rank == rank)


def row(runtime: Runtime, run: RunDir) -> queries.RunRow:
    return queries.run(runtime.store, run.run_id)


def step(runtime: Runtime, run: RunDir) -> int:
    """Cheaper than `queries.progress`: it is called often, and the workers need the CPU."""
    rows = runtime.store.rows(
        "SELECT max(step) FROM ingest.arrivals WHERE run_id = ?", [run.run_id]
    )
    return int(rows[0][0] or 0)


def ended(
    runtime: Runtime, run: RunDir, awaited: str, wait_until: Wait, seconds: float = 120.0
) -> None:
    """Waits for the end of the run and checks that it is the awaited one; if not, shows the log."""
    wait_until(lambda: not row(runtime, run).is_live, f"the run is {awaited}", seconds)
    assert row(runtime, run).status == awaited, f"{row(runtime, run).note}\n{run.log_tail()}"


def trains(runtime: Runtime, run: RunDir, beyond: int, wait_until: Wait) -> None:
    """Waits until the run is beyond a step, and checks that it is alive."""
    wait_until(
        lambda: step(runtime, run) > beyond or row(runtime, run).status in journal.ENDED,
        f"step {beyond + 1}",
    )
    assert row(runtime, run).is_live, f"{row(runtime, run).note}\n{run.log_tail()}"


def trained_alone(spec: RunSpec, steps: int) -> tuple[np.ndarray, Arrays]:
    """Returns the generator's loss of each step and the state after the last one, trained in this
    process.
    """
    from gan_runtime.engines.tf.engine import TfEngine

    data = data_for_workload(spec, loading.load(spec.dataset))
    engine = keep_alive(TfEngine(spec, workload_of(spec), data, "cpu"))
    return engine.run(steps).values["loss_generator"], engine.state()


@pytest.mark.usefixtures("cores")
def test_two_streaming_workers_match_one_process_across_stop_and_resume(
    runtime: Runtime, home: Home, wait_until: Wait
) -> None:
    streamed = {**PAIR, **SGD, "dataset": large_sets.prepare(home)}
    pair = runtime.commands.submit(RunSpec.parse({**streamed, "epochs": 4}))
    wait_until(lambda: pair.trainer_journal().exists(), "the first worker introduces the run")
    with slowed(worker_pid(pair, 1)):  # otherwise all 56 steps finish before the stop request
        trains(runtime, pair, 2, wait_until)
        runtime.commands.stop(pair.run_id)
    ended(runtime, pair, "stopped", wait_until, END_SECONDS)
    saved = checkpoints.load_newest(pair.checkpoints)
    assert saved is not None
    assert saved.step == step(runtime, pair) < 4 * STEPS_PER_EPOCH

    runtime.commands.resume(pair.run_id)
    losses_alone, alone = trained_alone(
        RunSpec.parse({**TOY, **SGD, "epochs": 4}), 4 * STEPS_PER_EPOCH
    )
    ended(runtime, pair, "finished", wait_until)
    assert (row(runtime, pair).workers, row(runtime, pair).attempt) == (2, 2)
    assert len(losses(runtime, pair)) == 4 * STEPS_PER_EPOCH
    assert np.abs(losses(runtime, pair) - losses_alone).max() < 1e-5
    last = checkpoints.load_newest(pair.checkpoints)
    assert last is not None
    assert set(alone) == set(last.arrays)
    assert max(np.abs(array - last.arrays[name]).max() for name, array in alone.items()) < 1e-5
    assert len(list(pair.samples.glob("*.png"))) == 4
    times = runtime.store.rows(
        "SELECT rank, min(step) > 1, max(step), count(*) = count(DISTINCT step), min(wait_s) > 0,"
        " max(abs(step_s - compute_s - wait_s)) < 1e-9 FROM worker_times WHERE run_id = ? GROUP BY"
        " rank ORDER BY rank",
        [pair.run_id],
    )
    assert times == [(rank, True, 4 * STEPS_PER_EPOCH, True, True, True) for rank in (0, 1)]


@contextmanager
def slowed(pid: int) -> Iterator[None]:
    """Stalls the process for three quarters of the time, in pulses, as on a shared host."""
    over = threading.Event()

    def pulse() -> None:
        while not over.wait(0.01):
            os.kill(pid, signal.SIGSTOP)
            over.wait(0.03)
            os.kill(pid, signal.SIGCONT)

    thread = threading.Thread(target=pulse)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def straggler_events(runtime: Runtime, run: RunDir) -> list[str]:
    rows = runtime.store.rows(
        "SELECT message FROM events WHERE run_id = ? AND kind = 'straggler' AND level = 'warning'"
        " AND message LIKE 'Worker 1 %'",
        [run.run_id],
    )
    return [message for (message,) in rows]


def slow_worker_shows(runtime: Runtime, run: RunDir) -> bool:
    """Returns whether worker 1 computes longer and worker 0 waits longer."""
    times = queries.worker_times(runtime.store, run.run_id).set_index("rank")
    longer = times.loc[1, "compute_s"] > STRAGGLER_FACTOR * times.loc[0, "compute_s"]
    return bool(longer and times.loc[0, "wait_share"] > times.loc[1, "wait_share"])


def test_killed_worker_is_named_and_no_worker_outlives_its_launcher(
    home: Home, host: Host, wait_until: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The launcher is the regular one; its workers have a toy engine."""
    monkeypatch.setattr("gan_runtime.hardware.hosts.probe", lambda: host)
    monkeypatch.setenv(PACE_VARIABLE, "0.05")
    first = Runtime.open(home, starter=toys())
    run = first.commands.submit(RunSpec.parse({**LONG, "batch_size_global": 8}))
    try:
        trains(first, run, 2, wait_until)
    finally:
        first.close()
    runtime = Runtime.open(home, starter=toys())  # a new owner, which did not start them
    try:
        trains(runtime, run, step(runtime, run), wait_until)
        victim = worker_pid(run, 1)
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda: not living(run), "the launcher and both workers end", END_SECONDS)
        name = f"worker 1 of 2 (pid {victim}) was killed by signal 9 (SIGKILL)"
        wait_until(lambda: name in row(runtime, run).note, "the loss is noticed", END_SECONDS)
        assert row(runtime, run).status == "lost"

        before = step(runtime, run)
        runtime.commands.resume(run.run_id)
        wait_until(
            lambda: row(runtime, run).attempt == 2 and row(runtime, run).status == "running",
            "the run is resumed",
        )
        trains(runtime, run, before, wait_until)
        assert len(losses(runtime, run)) > before, (
            "each step once, also where the lost attempt had gone on"
        )
        assert run.process() is not None
        os.kill(run.process().pid, signal.SIGKILL)  # type: ignore[union-attr]
        ended(runtime, run, "lost", wait_until, END_SECONDS)
        wait_until(lambda: not living(run), "the orphaned workers end", END_SECONDS)
    finally:
        for process in living(run):
            process.kill()
        runtime.close()


def test_cluster_without_a_dashboard_names_slow_and_lost_workers(
    home: Home, host: Host, wait_until: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Starts workers as srun or Kubernetes would: a folder with a spec.json, and one command with
    TF_CONFIG per node.
    """
    run = RunDir(home.runs / "cluster-0001")
    run.path.mkdir()
    write_json(run.spec_path, {**LONG, "steps_per_loop": 5, "batch_size_global": 256})
    addresses = free_addresses(2)
    command = [sys.executable, "-m", "gan_runtime.worker", str(run.path), "1", "cpu"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "CUDA_VISIBLE_DEVICES": "-1"}
    with run.log.open("ab") as log:
        workers = [
            subprocess.Popen(
                command,
                env={**environment, "TF_CONFIG": tf_config(addresses, rank)},
                stdout=log,
                stderr=log,
            )
            for rank in (0, 1)
        ]
    monkeypatch.setattr("gan_runtime.hardware.hosts.probe", lambda: host)
    runtime = Runtime.open(home)
    try:
        wait_until(lambda: run.trainer_journal().exists(), "the first worker introduces the run")
        wait_until(
            lambda: queries.runs(runtime.store) and step(runtime, run) > 2, "the cluster trains"
        )
        assert row(runtime, run).status == "running"
        with slowed(workers[1].pid):
            event = wait_until(lambda: straggler_events(runtime, run), "worker 1 is named")
            wait_until(lambda: slow_worker_shows(runtime, run), "its times show it")
        assert event[0].startswith("Worker 1 is slow in epoch ")
        workers[1].kill()
        assert workers[0].wait(END_SECONDS) != 0
        wait_until(
            lambda: row(runtime, run).status == "failed", "the failure is noticed", END_SECONDS
        )
        assert "worker 0 of 2: lost the connection to worker 1 of 2" in row(runtime, run).note
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
        runtime.close()
