"""A real Slurm with two hosts for the tests of this folder."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from gan_runtime.commands.runtime import Runtime
from gan_runtime.hardware.hosts import Host
from gan_runtime.records.home import Home
from gan_runtime.targets import configuration
from gan_runtime.targets.configuration import SlurmTarget
from tests.browser.fixtures import browser
from tests.full.targets.slurm_runs import TARGET
from tests.support.cluster import rig as rigs
from tests.support.cluster.rig import PYTHON, Rig

__all__ = ["browser", "on_rig", "rig"]

REQUIRED_VARIABLE = "GAN_TESTS_NEED_SLURM"  # set by .ci/run, where a missing package is an error


@pytest.fixture(scope="session")
def rig() -> Iterator[Rig]:
    """Two idle hosts, n1 and n2, with this machine's files."""
    if why := rigs.missing():
        if os.environ.get(REQUIRED_VARIABLE):
            pytest.fail(f"Slurm cannot be started: {why}")
        pytest.skip(reason=f"Slurm cannot be started: {why}")
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    started = Rig(int(worker))
    try:
        started.up()
        yield started
    finally:
        started.down()


@pytest.fixture
def on_rig(rig: Rig, home: Home, host: Host, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runtime]:
    """The owner of a home with the target "rig"."""
    monkeypatch.setattr("gan_runtime.hardware.hosts.probe", lambda: host)
    monkeypatch.setenv("SLURM_CONF", str(rig.configuration))
    settings = SlurmTarget(python=str(PYTHON), poll_seconds=1.0, time_limit="00:30:00")
    configuration.add(home, TARGET, settings)
    opened = Runtime.open(home)
    yield opened
    opened.close()
    subprocess.run(["scancel", "--user=root"], env=rig.environment, check=False)
    rig.wait(lambda: not rig.run("squeue", "-h").strip(), "all jobs have ended")
