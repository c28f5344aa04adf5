"""A run on two hosts of a real Slurm, from Launch to its end in a browser."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from gan_runtime.records.home import Home
from gan_runtime.targets import configuration
from gan_runtime.targets.configuration import SlurmTarget
from tests.browser.dashboard_process import Dashboard, open_page, settled
from tests.browser.launch_page import choose, fill, start
from tests.browser.live_page import losses
from tests.support.cluster.rig import PYTHON, Rig

JOB = re.compile(r"Job [0-9]+ · nodes n\[1-2\]")


@pytest.fixture
def dashboard(rig: Rig, home: Home, tmp_path: Path) -> Iterator[Dashboard]:
    """A dashboard on the host where jobs are submitted, with the target "rig"."""
    settings = SlurmTarget(
        python=str(PYTHON), poll_seconds=1.0, time_limit="00:30:00", extra=("--nodes=2",)
    )
    configuration.add(home, "rig", settings)
    started = Dashboard(home.path, tmp_path / "dashboard.log", SLURM_CONF=str(rig.configuration))
    yield started
    started.stop()
    subprocess.run(["scancel", "--user=root"], env=rig.environment, check=False)
    rig.wait(lambda: not rig.run("squeue", "-h").strip(), "all jobs have ended")


def test_a_run_is_launched_on_two_hosts_watched_and_finished(
    browser: Browser, dashboard: Dashboard, home: Home
) -> None:
    page = open_page(browser, f"{dashboard.address}/launch")
    settled(page)
    choose(page, "Where", "rig")
    expect(page.get_by_text("Partition main, 2 nodes of 2 cores")).to_be_visible()
    choose(page, "Workload", "Fully connected GAN")
    fill(page, "textbox", "Workers (processes)", "2")
    fill(page, "textbox", "Epochs (passes over the data)", "30")
    expect(page.get_by_text("--set target=rig")).to_be_visible()
    run = home.run_dir(start(page))
    expect(page.get_by_text("2 workers × CPU on rig")).to_be_visible()
    expect(losses(page)).to_be_visible()
    expect(page.get_by_text(JOB)).to_be_visible()
    expect(page.get_by_text("all 30 epochs done")).to_be_visible()
    expect(page.get_by_text(JOB)).to_be_visible()
    assert "worker 1 of 2" in run.log_tail(rank=1)
    page.goto(f"{dashboard.address}/run?run={run.run_id}&tab=log")
    settled(page)
    choose(page, "Worker", "1")
    expect(page.get_by_text("worker 1 of 2:").first).to_be_visible()
    page.close()
