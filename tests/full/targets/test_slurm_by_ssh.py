"""A Slurm that only ssh reaches: this host has no configuration of it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gan_runtime.commands.runtime import Runtime
from gan_runtime.hardware.hosts import Host
from gan_runtime.records.home import REPOSITORY, Home
from gan_runtime.records.journal import ENDED
from gan_runtime.spec import RunSpec
from gan_runtime.store import queries
from gan_runtime.targets import configuration
from gan_runtime.targets.configuration import SlurmTarget
from gan_runtime.training import inference
from tests.full.targets.copied_runs import digest, is_over
from tests.support import command_line
from tests.support.cluster import ssh_server
from tests.support.cluster.rig import PYTHON, Rig
from tests.support.cluster.ssh_server import HOST, SshServer

OPTIONS = {
    "workload": "mlp_gan",
    "batch_size_global": 128,
    "precision": "float32",
    "epochs": 4_000,
}


@pytest.fixture
def server(
    rig: Rig, home: Home, host: Host, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SshServer]:
    """The login node of the target "rig"."""
    if why := ssh_server.missing():
        pytest.skip(reason=f"no ssh server can be started: {why}")
    started = SshServer({"SLURM_CONF": str(rig.configuration)})
    monkeypatch.setenv("PATH", f"{started.commands}:{os.environ['PATH']}")
    monkeypatch.delenv("SLURM_CONF", raising=False)
    monkeypatch.setattr("gan_runtime.hardware.hosts.probe", lambda: host)
    settings = SlurmTarget(host=HOST, python=str(PYTHON), poll_seconds=1.0)
    configuration.add(home, "rig", settings)
    started.start()
    yield started
    started.remove()
    subprocess.run(["scancel", "--user=root"], env=rig.environment, check=False)
    rig.wait(lambda: not rig.run("squeue", "-h").strip(), "all jobs have ended")


def test_a_run_trains_and_stops_through_a_connection_that_breaks(
    server: SshServer, home: Home, wait_until: Callable[..., Any]
) -> None:
    wait_until(lambda: "partition main" in checked(home), "the target answers", 20.0)
    runtime = Runtime.open(home)
    try:
        run = runtime.commands.submit(RunSpec.parse({**OPTIONS, "target": "rig"}))

        def status() -> str:
            return queries.run(runtime.store, run.run_id).status

        wait_until(lambda: status() in ("running", *ENDED), "it trains", 120.0)
        assert status() == "running", queries.run(runtime.store, run.run_id).note
        server.stop()
        targets = runtime.targets
        assert targets is not None
        wait_until(lambda: targets.trouble("rig"), "the silence is noticed")
        assert status() == "running"
        server.start()
        wait_until(lambda: not targets.trouble("rig"), "it answers again")
        assert status() == "running"
        runtime.commands.stop(run.run_id)
        wait_until(lambda: status() == "stopped", "it has saved")
    finally:
        runtime.close()


def test_a_cluster_that_does_not_see_the_home_trains_with_two_workers_and_its_run_is_copied(
    server: SshServer, home: Home, tmp_path: Path, wait_until: Callable[..., Any]
) -> None:
    there = tmp_path / "there"
    settings = SlurmTarget(
        host=HOST,
        project=str(REPOSITORY),
        python=str(PYTHON),
        home=str(there),
        poll_seconds=1.0,
    )
    configuration.add(home, "rig", settings)
    wait_until(lambda: "partition main" in checked(home), "the target answers", 20.0)
    runtime = Runtime.open(home)
    try:
        asked = {**OPTIONS, "target": "rig", "workers": 2, "job_options": "--ntasks-per-node=1"}
        run = runtime.commands.submit(RunSpec.parse(asked))
        far = there / "runs" / run.run_id

        def status() -> str:
            return queries.run(runtime.store, run.run_id).status

        def step() -> int:
            return queries.progress(runtime.store, run.run_id).step

        wait_until(lambda: step() > 0 or status() in ENDED, "its steps arrive", 120.0)
        assert status() == "running", queries.run(runtime.store, run.run_id).note
        assert str(home.path) not in (far / "job-1.sh").read_text(encoding="utf-8")
        server.stop()
        targets = runtime.targets
        assert targets is not None
        wait_until(lambda: targets.trouble("rig"), "the silence is noticed")
        before = step()
        server.start()
        wait_until(lambda: step() > before, "it goes on where it was")
        runtime.commands.stop(run.run_id)
        wait_until(lambda: status() == "stopped", "it has saved")
        saved = step()
        runtime.commands.resume(run.run_id)
        wait_until(lambda: step() > saved, "it continues there", 120.0)
        assert queries.run(runtime.store, run.run_id).attempt == 2
        runtime.commands.stop(run.run_id)
        wait_until(lambda: status() == "stopped", "it has saved again")
        wait_until(lambda: is_over(targets, run), "its files are here")
        names = {"log.txt", "log-1.txt", "journal-0.jsonl", "journal-1.jsonl"}
        assert names <= {path.name for path in run.path.iterdir()}
        for name in names:
            assert digest(run.path / name) == digest(far / name)
        assert inference.states_of(run)
    finally:
        runtime.close()


def checked(home: Home) -> str:
    return command_line.run("targets", "check", "rig", "--home", str(home.path)).output
