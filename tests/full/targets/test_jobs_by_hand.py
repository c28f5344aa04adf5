"""Jobs of a real Slurm with two hosts, submitted by hand as docs/cluster.md says, and what an owner
of their home shows of them.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest

from gan_runtime.commands.runtime import Runtime
from gan_runtime.hardware.hosts import Host
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir, write_json
from gan_runtime.store import queries
from tests.support import toy_trainer
from tests.support.cluster.rig import PYTHON, Rig
from tests.support.toy_engine import PACE_VARIABLE

Wait = Callable[..., Any]
TRAINER = "gan_runtime.worker"
SHORT = {"workload": "mlp_gan", "batch_size_global": 128, "precision": "float32", "epochs": 2}
LONG = {**SHORT, "epochs": 4_000, "steps_per_loop": 7}
OF_TOY = {"batch_size_global": 8}  # its data set has 40 rows


@pytest.fixture
def runtime(home: Home, host: Host, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runtime]:
    """The owner of the home, on the host where jobs are submitted."""
    monkeypatch.setattr("gan_runtime.hardware.hosts.probe", lambda: host)
    opened = Runtime.open(home)
    yield opened
    opened.close()


@pytest.fixture
def jobs(rig: Rig) -> Iterator[list[int]]:
    """The ids of a test's jobs, which end with it."""
    submitted: list[int] = []
    yield submitted
    for job in submitted:
        subprocess.run(["scancel", "-s", "KILL", "-f", str(job)], env=rig.environment, check=False)
        subprocess.run(["scancel", str(job)], env=rig.environment, check=False)
    rig.wait(lambda: not rig.run("squeue", "-h").strip(), "all jobs have ended")


def folder_of(home: Home, run_id: str, **options: Any) -> RunDir:
    """The folder of a run, made by hand."""
    run = RunDir(home.runs / run_id)
    run.path.mkdir()
    write_json(run.spec_path, options)
    return run


def command(run: RunDir, module: str = TRAINER) -> str:
    return f"{PYTHON} -m {module} {run.path} 1 cpu"


def row(runtime: Runtime, run: RunDir) -> queries.RunRow:
    return queries.run(runtime.store, run.run_id)


def reaches(runtime: Runtime, run: RunDir, status: str, wait_until: Wait, attempt: int = 1) -> None:
    """Waits until the run is shown in this state; without success says what it is instead."""
    shown: queries.RunRow | None = None

    def is_reached() -> bool:
        nonlocal shown
        rows = queries.runs(runtime.store)
        shown = next((each for each in rows if each.run_id == run.run_id), None)
        return shown is not None and (shown.status, shown.attempt) == (status, attempt)

    try:
        wait_until(is_reached, f"{run.run_id} is {status} in attempt {attempt}", 180.0)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{shown}\n{run.log_tail()}") from None


def epochs(runtime: Runtime, run: RunDir) -> list[int]:
    rows = runtime.store.rows(
        "SELECT epoch FROM epochs WHERE run_id = ? ORDER BY epoch", [run.run_id]
    )
    return [epoch for (epoch,) in rows]


def end(process: subprocess.Popen[bytes]) -> None:
    """Kills a process on a host: the child of the command that has entered it."""
    for child in psutil.Process(process.pid).children(recursive=True):
        child.kill()
    process.wait()


def test_job_with_one_worker_is_shown_with_its_log(
    rig: Rig, jobs: list[int], runtime: Runtime, home: Home, wait_until: Wait
) -> None:
    run = folder_of(home, "alone-0001", **{**SHORT, **OF_TOY})
    jobs.append(rig.sbatch(command(run, toy_trainer.MODULE)))
    reaches(runtime, run, "finished", wait_until)
    wait_until(lambda: epochs(runtime, run) == [1, 2], "both epochs are shown", 20.0)
    assert runtime.store.rows("SELECT * FROM set_aside") == []
    assert "all 2 epochs done" in run.log_tail()
    assert str(run.log) in rig.output(jobs[0]), "the job's own output says where it continues"


@pytest.mark.parametrize("engine", ["tensorflow", "jax"])
def test_two_jobs_share_two_hosts_and_each_is_saved_when_slurm_ends_it(
    engine: str, rig: Rig, jobs: list[int], runtime: Runtime, home: Home, wait_until: Wait
) -> None:
    options = {**LONG, "engine": engine, "workers": 2}
    cancelled, requeued = (
        folder_of(home, f"{name}-0001", seed=seed, **options)
        for name, seed in (("cancelled", 1), ("requeued", 2))
    )
    for run in (cancelled, requeued):
        words = ("--nodes=2", "--ntasks-per-node=1", "--requeue")
        jobs.append(rig.sbatch(f"srun --kill-on-bad-exit=1 {command(run)}", *words))
    for run in (cancelled, requeued):
        reaches(runtime, run, "running", wait_until)
        wait_until(lambda run=run: len(epochs(runtime, run)) >= 2, "two epochs are done")
    for rank in (0, 1):
        assert "meet at n1:" in cancelled.worker_log(rank).read_text(encoding="utf-8")

    rig.run("scancel", str(jobs[0]))
    reaches(runtime, cancelled, "stopped", wait_until)
    assert cancelled.has_checkpoint
    assert "saved, can be resumed" in row(runtime, cancelled).note

    rig.run("scontrol", "requeue", str(jobs[1]))
    reaches(runtime, requeued, "stopped", wait_until)
    before = len(epochs(runtime, requeued))
    rig.start_now(jobs[1])
    reaches(runtime, requeued, "running", wait_until, attempt=2)
    wait_until(lambda: len(epochs(runtime, requeued)) > before, "the next attempt goes on")
    measured = epochs(runtime, requeued)
    assert measured == list(range(1, len(measured) + 1)), "each epoch once"


def test_train_in_a_job_does_not_train_where_the_owner_is(
    rig: Rig, runtime: Runtime, home: Home
) -> None:
    words = [str(PYTHON), "-m", "gan_runtime", "train", "--preset", "quick", "--home"]
    done = subprocess.run(
        ["srun", "--ntasks=1", *words, str(home.path)],
        env=rig.environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode != 0
    assert "which would train the run there while this Slurm job idles" in done.stderr
    assert queries.runs(runtime.store) == []
    several = subprocess.run(
        ["srun", "--ntasks=2", "--nodes=2", *words, str(home.path.parent / "other")],
        env=rig.environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "srun starts this command 2 times" in several.stderr


def test_owner_on_another_login_node_does_not_call_a_live_run_lost(
    rig: Rig, home: Home, wait_until: Wait
) -> None:
    run = folder_of(home, "local-0001", **{**LONG, **OF_TOY})
    setting = {PACE_VARIABLE: "0.05"}
    trainer = subprocess.Popen(
        rig.on_host("n1", *command(run, toy_trainer.MODULE).split(), environment=setting),
        stdout=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: run.trainer_journal().exists(), "the trainer has begun")
        owner = [str(PYTHON), "-m", "tests.support.owner", str(home.path), "5", TRAINER]
        with subprocess.Popen(rig.on_host("n2", *owner), stdout=subprocess.PIPE) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == b"open\n"
            first = run.trainer_journal().stat().st_size
            wait_until(lambda: run.trainer_journal().stat().st_size > 2 * first, "it trains on")
            end(other)
        statuses = [change.status for _, change in journal.statuses(run.supervisor_journal)]
        assert statuses == ["starting"]
    finally:
        end(trainer)
