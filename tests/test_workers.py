"""Several workers with real processes: the numbers of one process, stop, loss, resume, and who is slow."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from gan_runtime import journal, launcher
from gan_runtime.cluster import Place, free_addresses, tf_config, without_cluster
from gan_runtime.home import REPOSITORY, Home
from gan_runtime.hosts import Host
from gan_runtime.rundir import RunDir, write_json
from gan_runtime.runtime import Runtime
from gan_runtime.spec import RunSpec
from gan_runtime.store import queries
from gan_runtime.training import checkpoints
from gan_runtime.training.stragglers import STRAGGLER_FACTOR

Wait = Callable[..., Any]
STEPS_PER_EPOCH = 14  # 1,797 digits in batches of 128
TOY = {"workload": "mlp_gan", "batch_size_global": 128, "precision": "float32", "steps_per_loop": 2}
PAIR = {**TOY, "workers": 2}
LONG = {**PAIR, "epochs": 2_000}
END_SECONDS = 30.0  # within which all workers must have ended when one is gone


@pytest.fixture
def runtime(home: Home, host: Host, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runtime]:
    """The owner of the home, on a stated host; its workers are real and ended with the test."""
    monkeypatch.setattr("gan_runtime.hosts.probe", lambda: host)
    opened = Runtime.open(home)
    yield opened
    for run in home.run_dirs():
        for process in living(run):
            process.kill()
    opened.close()


def living(run: RunDir) -> list[psutil.Process]:
    """The launcher and the workers that have not ended."""
    identity = run.process()
    assert identity is not None
    pids = [identity["pid"], *(worker["pid"] for worker in identity.get("workers", []))]
    processes = [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]
    return [process for process in processes if process.status() != psutil.STATUS_ZOMBIE]


def worker_pid(run: RunDir, rank: int) -> int:
    identity = run.process()
    assert identity is not None
    return int(next(worker["pid"] for worker in identity["workers"] if worker["rank"] == rank))


def row(runtime: Runtime, run: RunDir) -> queries.RunRow:
    return queries.run(runtime.store, run.run_id)


def step(runtime: Runtime, run: RunDir) -> int:
    """Cheaper than `queries.progress`: it is asked often, and the workers need the processor."""
    rows = runtime.store.rows("SELECT max(step) FROM ingest.arrivals WHERE run_id = ?", [run.run_id])
    return int(rows[0][0] or 0)


def ended(runtime: Runtime, run: RunDir, awaited: str, wait_until: Wait, seconds: float = 120.0) -> None:
    """Waits for the end of the run and checks that it is the awaited one; the log says what else happened."""
    wait_until(lambda: not row(runtime, run).is_live, f"the run is {awaited}", seconds)
    assert row(runtime, run).status == awaited, f"{row(runtime, run).note}\n{run.log_tail()}"


def trains(runtime: Runtime, run: RunDir, beyond: int, wait_until: Wait) -> None:
    """Waits until the run is beyond a step, as long as it lives."""
    wait_until(lambda: step(runtime, run) > beyond or row(runtime, run).status in journal.ENDED, f"step {beyond + 1}")
    assert row(runtime, run).is_live, f"{row(runtime, run).note}\n{run.log_tail()}"


def losses(runtime: Runtime, run: RunDir) -> np.ndarray:
    """float64 (steps,), and a check that each step is there exactly once."""
    rows = runtime.store.rows(
        "SELECT step, value FROM scalars WHERE run_id = ? AND metric = 'loss_generator' ORDER BY step", [run.run_id]
    )
    assert [number for number, _ in rows] == list(range(1, len(rows) + 1))
    return np.array([value for _, value in rows])


def test_two_workers_compute_what_one_process_computes_and_stop_and_resume_without_a_seam(
    runtime: Runtime, wait_until: Wait
) -> None:
    alone = runtime.submit(RunSpec.parse({**TOY, "epochs": 6}))
    pair = runtime.submit(RunSpec.parse({**PAIR, "epochs": 6}))
    ended(runtime, alone, "finished", wait_until)
    trains(runtime, pair, STEPS_PER_EPOCH, wait_until)
    runtime.stop(pair.run_id)
    ended(runtime, pair, "stopped", wait_until, END_SECONDS)
    saved = checkpoints.load_newest(pair.checkpoints)
    assert saved is not None
    assert saved.step == step(runtime, pair) < 6 * STEPS_PER_EPOCH

    runtime.resume(pair.run_id)
    ended(runtime, pair, "finished", wait_until)
    assert (row(runtime, pair).workers, row(runtime, pair).attempt) == (2, 2)
    assert len(losses(runtime, pair)) == 6 * STEPS_PER_EPOCH
    assert np.abs(losses(runtime, pair) - losses(runtime, alone)).max() < 1e-5
    states = [checkpoints.load_newest(run.checkpoints) for run in (alone, pair)]
    assert states[0] is not None
    assert states[1] is not None
    apart = [np.abs(array - states[1].arrays[name]).max() for name, array in states[0].arrays.items()]
    assert max(apart) < 1e-5
    assert len(list(pair.samples.glob("*.png"))) == 6
    times = runtime.store.rows(
        "SELECT rank, min(step) > 1, max(step), count(*) = count(DISTINCT step), min(wait_s) > 0, max(abs(step_s - compute_s - wait_s)) < 1e-9"
        " FROM worker_times WHERE run_id = ? GROUP BY rank ORDER BY rank",
        [pair.run_id],
    )
    assert times == [(rank, True, 6 * STEPS_PER_EPOCH, True, True, True) for rank in (0, 1)]


def test_a_killed_worker_ends_the_run_with_its_name_also_under_a_new_owner_and_the_run_is_resumed(
    home: Home, host: Host, wait_until: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gan_runtime.hosts.probe", lambda: host)
    first = Runtime.open(home)
    run = first.submit(RunSpec.parse({**PAIR, "epochs": 30}))
    try:
        trains(first, run, STEPS_PER_EPOCH, wait_until)
    finally:
        first.close()
    runtime = Runtime.open(home)
    try:
        trains(runtime, run, 2 * STEPS_PER_EPOCH, wait_until)
        victim = worker_pid(run, 1)
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda: not living(run), "the launcher and both workers end", END_SECONDS)
        name = f"worker 1 of 2 (pid {victim}) was killed by signal 9 (SIGKILL)"
        wait_until(lambda: name in row(runtime, run).note, "the loss is noticed", END_SECONDS)
        assert row(runtime, run).status == "lost"

        runtime.resume(run.run_id)
        ended(runtime, run, "finished", wait_until)
        assert len(losses(runtime, run)) == 30 * STEPS_PER_EPOCH
    finally:
        for process in living(run):
            process.kill()
        runtime.close()


@contextmanager
def slowed(pid: int) -> Iterator[None]:
    """The process stands still for three quarters of the time, in pulses, as on a host that others use."""
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


def stragglers_told(runtime: Runtime, run: RunDir) -> list[str]:
    rows = runtime.store.rows(
        "SELECT message FROM events WHERE run_id = ? AND kind = 'straggler' AND level = 'warning' AND message LIKE 'Worker 1 %'",
        [run.run_id],
    )
    return [message for (message,) in rows]


def slow_times(runtime: Runtime, run: RunDir) -> Any:
    """The times of both workers once worker 1 computes longer; None before."""
    times = queries.worker_times(runtime.store, run.run_id).set_index("rank")
    return times if times.loc[1, "compute_s"] > STRAGGLER_FACTOR * times.loc[0, "compute_s"] else None


def test_a_slow_worker_is_named_and_no_worker_outlives_its_launcher(runtime: Runtime, wait_until: Wait) -> None:
    run = runtime.submit(RunSpec.parse({**LONG, "steps_per_loop": 5, "batch_size_global": 256}))
    trains(runtime, run, 2, wait_until)
    with slowed(worker_pid(run, 1)):
        told = wait_until(lambda: stragglers_told(runtime, run), "worker 1 is named")
        shown = wait_until(lambda: slow_times(runtime, run), "the times show it")
    assert told[0].startswith("Worker 1 is the slowest in epoch ")
    assert shown.loc[0, "wait_s"] > shown.loc[1, "wait_s"]

    os.kill(run.process()["pid"], signal.SIGKILL)  # type: ignore[index]
    ended(runtime, run, "lost", wait_until, END_SECONDS)
    wait_until(lambda: not living(run), "the orphaned workers end", END_SECONDS)


# ---- places on a cluster ------------------------------------------------------------------------------------------------


FIND = """
import os, sys
from gan_runtime.errors import AcceleratorError
from gan_runtime.engines import tf_cluster
for case in sys.stdin.read().splitlines():
    import json
    variables, workers = json.loads(case)
    os.environ.pop("TF_CONFIG", None)
    os.environ.update(variables)
    try:
        place = tf_cluster.place(workers)
        print(json.dumps([place.rank, place.workers, json.loads(os.environ["TF_CONFIG"])["cluster"]]))
    except AcceleratorError as error:
        print(json.dumps(str(error)))
"""


def places(*cases: tuple[dict[str, str], int]) -> list[Any]:
    """What `tf_cluster.place` gives for each (environment, workers), in a process of its own: it reads and writes the environment."""
    environment = {**without_cluster(dict(os.environ)), "PYTHONPATH": str(REPOSITORY)}
    text = "\n".join(json.dumps(case) for case in cases)
    child = subprocess.run(
        [sys.executable, "-c", FIND], input=text, env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    return [json.loads(line) for line in child.stdout.splitlines()]


def test_a_worker_finds_its_rank_in_tf_config_and_in_slurms_variables() -> None:
    with_chief = {"cluster": {"chief": ["a:1"], "worker": ["b:2", "c:3"]}, "task": {"type": "worker", "index": 1}}
    slurm = {
        "SLURM_PROCID": "2",
        "SLURM_STEP_NUM_TASKS": "4",
        "SLURM_STEP_NODELIST": "node[1-2]",
        "SLURM_STEP_TASKS_PER_NODE": "2(x2)",
    }
    found = places(
        ({"TF_CONFIG": tf_config(["a:1", "b:2"], 1)}, 2),
        ({"TF_CONFIG": json.dumps(with_chief)}, 3),
        ({"TF_CONFIG": tf_config(["a:1", "b:2"], 1)}, 4),
        ({"TF_CONFIG": tf_config(["a:1", "b:2"], 2)}, 2),
        (slurm, 4),
        ({**slurm, "SLURM_PROCID": "0"}, 2),
    )
    assert found[0] == [1, 2, {"worker": ["a:1", "b:2"]}]
    assert found[1][:2] == [2, 3]
    assert found[2] == "workers is 4, but TF_CONFIG names 2 worker(s): start 4, or use workers=2."
    assert "TF_CONFIG does not say which worker this is" in found[3]
    assert found[4] == [2, 4, {"worker": ["node1:18900", "node1:18901", "node2:18900", "node2:18901"]}]
    assert found[5] == "workers is 2, but Slurm names 4 worker(s): start 2, or use workers=4."


def test_workers_of_a_cluster_need_no_dashboard_and_name_the_one_that_is_gone(
    home: Home, host: Host, wait_until: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As srun or Kubernetes would start them: a folder with a spec.json, and one command with TF_CONFIG on each node."""
    run = RunDir(home.runs / "cluster-0001")
    run.path.mkdir()
    write_json(run.spec_path, LONG)
    addresses = free_addresses(2)
    command = [sys.executable, "-m", "gan_runtime.worker", str(run.path), "1", "cpu"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "CUDA_VISIBLE_DEVICES": "-1"}
    with run.log.open("ab") as log:
        workers = [
            subprocess.Popen(command, env={**environment, "TF_CONFIG": tf_config(addresses, rank)}, stdout=log, stderr=log)
            for rank in (0, 1)
        ]
    monkeypatch.setattr("gan_runtime.hosts.probe", lambda: host)
    runtime = Runtime.open(home)
    try:
        wait_until(lambda: run.trainer_journal().exists(), "the first worker introduces the run")
        wait_until(lambda: queries.runs(runtime.store) and step(runtime, run) > 2, "the cluster trains")
        assert row(runtime, run).status == "running"
        workers[1].kill()
        assert workers[0].wait(END_SECONDS) != 0
        wait_until(lambda: row(runtime, run).status == "failed", "the failure is noticed", END_SECONDS)
        assert "worker 0 of 2: the exchange with worker 1 of 2 broke off" in row(runtime, run).note
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
        runtime.close()


# ---- parts --------------------------------------------------------------------------------------------------------------


def test_each_worker_on_this_host_gets_its_share_of_cores_and_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    addresses = ["127.0.0.1:1", "127.0.0.1:2"]
    spec = RunSpec.parse({"workers": 2, "replicas": 2, "accelerator": "gpu"})
    on_gpus = [launcher.environment(spec, "gpu", addresses, rank, {})["CUDA_VISIBLE_DEVICES"] for rank in (0, 1)]
    assert on_gpus == ["0,1", "2,3"]
    assert launcher.environment(spec, "gpu", addresses, 1, {"CUDA_VISIBLE_DEVICES": "4,5,6,7"})["CUDA_VISIBLE_DEVICES"] == "6,7"
    on_cpu = launcher.environment(RunSpec.parse({"workers": 2}), "cpu", addresses, 1, {})
    assert on_cpu["TF_NUM_INTRAOP_THREADS"] == "4"
    assert json.loads(on_cpu["TF_CONFIG"])["task"] == {"type": "worker", "index": 1}


def test_other_workers_write_their_times_and_failures_only(tmp_path: Path) -> None:
    times = journal.WorkerTimes(rank=1, epoch=1, first_step=2, steps=2, step_s=0.3, compute_s=0.1, wait_s=0.2)
    with journal.SideJournalWriter(tmp_path / "journal-1.jsonl", 3) as writer:
        writer.write(journal.AttemptStart(resume_step=4), journal.Plan(images=1, steps_per_epoch=1, epochs=1))
        writer.write(journal.StatusChange(status="running", reason="training"), times)
        writer.write(journal.StatusChange(status="failed", reason="worker 1 of 2: no data"))
    kinds = [(record.kind, record.attempt) for record in journal.read_all(tmp_path / "journal-1.jsonl")]
    assert kinds == [("attempt", 3), ("worker_times", 3), ("status", 3)]


def test_a_place_names_itself() -> None:
    assert Place(1, 2).says("no data") == "worker 1 of 2: no data"
    assert Place().says("no data") == "no data"
