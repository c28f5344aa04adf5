"""A real Slurm with two hosts for the tests of this folder."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.browser.fixtures import browser
from tests.support.cluster import rig as rigs
from tests.support.cluster.rig import Rig

__all__ = ["browser", "rig"]

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
