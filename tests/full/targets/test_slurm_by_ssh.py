"""A Slurm that only ssh reaches: this host has no configuration of it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gan_runtime.commands.runtime import Runtime
from gan_runtime.hardware.hosts import Host
from gan_runtime.records.home import Home
from gan_runtime.records.journal import ENDED
from gan_runtime.spec import RunSpec
from gan_runtime.store import queries
from gan_runtime.targets import configuration
from gan_runtime.targets.configuration import SlurmTarget
from tests.support import command_line
from tests.support.cluster import ssh_server
from tests.support.cluster.rig import PYTHON, Rig
from tests.support.cluster.ssh_server import HOST, SshServer


@pytest.fixture
def server(rig: Rig, home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[SshServer]:
    """The login node of the target "rig"."""
    if why := ssh_server.missing():
        pytest.skip(reason=f"no ssh server can be started: {why}")
    started = SshServer({"SLURM_CONF": str(rig.configuration)})
    monkeypatch.setenv("PATH", f"{started.commands}:{os.environ['PATH']}")
    monkeypatch.delenv("SLURM_CONF", raising=False)
    settings = SlurmTarget(host=HOST, python=str(PYTHON), poll_seconds=1.0)
    configuration.add(home, "rig", settings)
    started.start()
    yield started
    started.remove()
    subprocess.run(["scancel", "--user=root"], env=rig.environment, check=False)
    rig.wait(lambda: not rig.run("squeue", "-h").strip(), "all jobs have ended")


def test_a_run_trains_and_stops_through_a_connection_that_breaks(
    server: SshServer,
    home: Home,
    host: Host,
    wait_until: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gan_runtime.hardware.hosts.probe", lambda: host)
    wait_until(lambda: "partition main" in checked(home), "the target answers", 20.0)
    options = {"workload": "mlp_gan", "batch_size_global": 128, "precision": "float32"}
    runtime = Runtime.open(home)
    try:
        run = runtime.commands.submit(RunSpec.parse({**options, "epochs": 4_000, "target": "rig"}))

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


def checked(home: Home) -> str:
    return command_line.run("targets", "check", "rig", "--home", str(home.path)).output
