"""Runs that Slurm starts: the members of a step, and what this host does not do to such a run."""

from __future__ import annotations

import itertools
import os
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest
from filelock import FileLock

from gan_runtime.base import cluster, slurm
from gan_runtime.base.errors import RunStateError
from gan_runtime.evaluation import jobs
from gan_runtime.evaluation.training_requests import SWITCH, RequestsWhileTraining
from gan_runtime.records import journal, processes
from gan_runtime.records.home import REPOSITORY, Home
from gan_runtime.records.identity import SILENCE_SECONDS
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.run_folder import RunDir, TrainerProcess
from gan_runtime.supervision import queue, recovery
from tests.support import toy_trainer
from tests.support.toy_owner import Owner

NewRun = Callable[..., RunDir]


@pytest.fixture
def on_cluster(new_run: NewRun) -> RunDir:
    """A run that trains on a cluster's host."""
    run = new_run("job-0001", still_action="stop", quality_every=1, epochs=10)
    run.write_process(TrainerProcess(pid=4_000_000, started=1.0, attempt=1, cluster_host="node-7"))
    running = StatusChange(status="running", reason="training")
    journal.append(run.trainer_journal(), 1, running)
    return run


# ---- members of a step ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("n1", ["n1"]),
        ("n[1-3]", ["n1", "n2", "n3"]),
        ("gpu[08-10,12],login", ["gpu08", "gpu09", "gpu10", "gpu12", "login"]),
        ("r[1-2]n[0-1]", ["r1n0", "r1n1", "r2n0", "r2n1"]),
        ("a-1.example.org,b[2]-x", ["a-1.example.org", "b2-x"]),
    ],
)
def test_host_names_of_slurm_are_expanded(text: str, hosts: list[str]) -> None:
    assert slurm.host_names(text) == hosts


def test_tasks_of_nodes_are_expanded() -> None:
    assert slurm.task_counts("2(x3),1") == [2, 2, 2, 1]


def test_jobs_and_steps_that_run_at_once_get_other_ports() -> None:
    starts = [slurm.first_port(job, step, 4) for job in range(4_000, 4_040) for step in (0, 1)]
    assert len(set(starts)) == len(starts)
    assert all(cluster.PORTS.start <= first <= cluster.PORTS.stop - 4 for first in starts)
    ends = [(first, first + 4) for first in sorted(starts)]
    assert all(end <= following for (_, end), (following, _) in itertools.pairwise(ends))
    assert slurm.first_port(10**7, 0, 500) + 500 <= cluster.PORTS.stop


def test_only_slurm_itself_remains_known_to_a_trainer_of_this_host() -> None:
    inside = {"SLURM_CONF": "/etc/s.conf", "SLURM_PROCID": "0", "TF_CONFIG": "{}", "PATH": "/bin"}
    assert cluster.without_cluster(inside) == {"SLURM_CONF": "/etc/s.conf", "PATH": "/bin"}


# ---- a job that Slurm starts again ---------------------------------------------------------------


def started(run: RunDir, **variables: str) -> subprocess.Popen[bytes]:
    """A trainer of the first attempt, whose output goes to the run's log."""
    words = processes.command(toy_trainer.MODULE, str(run.path), "1", "cpu")
    with run.log.open("ab") as log:
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), **variables}
        return subprocess.Popen(words, stdout=log, stderr=log, env=environment)


@pytest.mark.parametrize(("ends_as", "code"), [("stopped", 0), ("failed", 1)])
def test_a_requeued_job_waits_for_the_trainer_that_its_lost_host_still_runs(
    new_run: NewRun, wait_until: Callable[..., Any], ends_as: journal.Status, code: int
) -> None:
    run = new_run("job-0001", batch_size_global=8, epochs=1)
    with FileLock(run.worker_lock()):  # of that trainer
        with started(run) as second:
            assert second.wait(60.0) == 1
        assert f"already trains {run.run_id}; this process exits" in run.log_tail()
        requeued = started(run, **{slurm.RESTARTS_VARIABLE: "1"})
        wait_until(lambda: "waits for its end" in run.log_tail(), "it waits", 60.0)
        assert not run.trainer_journal().exists()
        last = StatusChange(status=ends_as, reason="as that trainer says")
        journal.append(run.trainer_journal(), 1, last)
    assert requeued.wait(60.0) == code
    states = [change.status for _, change in journal.statuses(run.trainer_journal())]
    assert states[-1] == ("failed" if code else "finished")
    assert ("it has failed: as that trainer says" in run.log_tail()) is bool(code)


# ---- what this host does not do ------------------------------------------------------------------


def test_a_cluster_run_leaves_the_devices_of_this_host_free(
    home: Home, new_run: NewRun, on_cluster: RunDir
) -> None:
    waiting = new_run("local-0001")
    owner = Owner(home)
    owner.at(0.0)
    assert owner.status(on_cluster) == "running"
    assert owner.status(waiting) in ("starting", "compiling", "running", "finished")


def test_a_stall_of_a_cluster_run_is_only_noted(on_cluster: RunDir) -> None:
    assert on_cluster.spec().still_action == "stop"
    assert recovery.stall_action(on_cluster) == "note"


def test_this_host_neither_resumes_nor_measures_a_cluster_run(
    home: Home, new_run: NewRun, on_cluster: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(SWITCH)
    requested: list[str] = []
    monkeypatch.setattr(jobs, "request", lambda _home, run_id, *_: requested.append(run_id))
    local = new_run("local-0001", quality_every=1, epochs=10)
    requests = RequestsWhileTraining(home)
    for run in (on_cluster, local):
        run.checkpoints.mkdir()
        (run.checkpoints / "step-00000001.safetensors").touch()
    requests.tick([(on_cluster, 1), (local, 1)])
    requests.tick([])
    assert requested == ["local-0001"]
    journal.append(on_cluster.trainer_journal(), 1, StatusChange(status="failed", reason="lost"))
    with pytest.raises(RunStateError, match=r"host node-7.*worker .*job-0001 2 cpu"):
        queue.resume(home, on_cluster, {}, "test")
    assert not on_cluster.stop_file.exists()


def test_unfinished_files_of_a_cluster_run_stay(on_cluster: RunDir) -> None:
    on_cluster.checkpoints.mkdir()
    part = on_cluster.checkpoints / "step-1.part"
    part.touch()
    recovery.clean_run(on_cluster)
    assert part.exists()


def test_silence_does_not_begin_anew_with_each_owner(home: Home, on_cluster: RunDir) -> None:
    ago = time.time() - SILENCE_SECONDS + 100.0
    os.utime(on_cluster.trainer_journal(), (ago, ago))
    owner = Owner(home)
    owner.at(50.0)
    assert owner.status(on_cluster) == "running"
    owner.at(150.0)
    assert owner.status(on_cluster) == "lost"
