"""A run on a host that only ssh reaches, with a home there and a copy here."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from gan_runtime.commands.runtime import Runtime
from gan_runtime.hardware.hosts import Host
from gan_runtime.records.home import REPOSITORY, Home
from gan_runtime.spec import RunSpec
from gan_runtime.store import queries
from gan_runtime.targets import configuration
from gan_runtime.targets.configuration import SshTarget
from gan_runtime.training import inference
from tests.browser.dashboard_process import Dashboard, open_page, settled
from tests.browser.launch_page import choose, fill, start
from tests.browser.live_page import losses
from tests.full.targets.conftest import REQUIRED_VARIABLE
from tests.full.targets.copied_runs import digest, is_over
from tests.support import command_line
from tests.support.cluster import ssh_server
from tests.support.cluster.ssh_server import HOST, SshServer

CLONE = str(REPOSITORY)
OPTIONS = {"workload": "mlp_gan", "batch_size_global": 128, "precision": "float32"}


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """The home on the other host."""
    return tmp_path / "there"


@pytest.fixture
def server(home: Home, there: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SshServer]:
    """The host of the target "box"."""
    if why := ssh_server.missing():
        if os.environ.get(REQUIRED_VARIABLE):
            pytest.fail(f"no ssh server can be started: {why}")
        pytest.skip(reason=f"no ssh server can be started: {why}")
    started = SshServer({})
    monkeypatch.setenv("PATH", f"{started.commands}:{os.environ['PATH']}")
    settings = SshTarget(
        kind="ssh",
        host=HOST,
        project=str(REPOSITORY),
        python=sys.executable,
        home=str(there),
        poll_seconds=1.0,
    )
    configuration.add(home, "box", settings)
    started.start()
    yield started
    started.remove()


def test_a_run_is_watched_through_a_cut_stopped_resumed_and_evaluated_here(
    server: SshServer,
    home: Home,
    there: Path,
    host: Host,
    wait_until: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gan_runtime.hardware.hosts.probe", lambda: host)
    place = ["--home", str(home.path)]
    by_command = {"host": "vm.invalid", "command": (str(server.commands / "ssh"), HOST)}
    configuration.add(home, "box", configuration.target(home, "box").model_copy(update=by_command))
    wait_until(
        lambda: "cores" in command_line.run("targets", "check", "box", *place).output,
        "the target answers",
        30.0,
    )
    runtime = Runtime.open(home)
    try:
        run = runtime.commands.submit(RunSpec.parse({**OPTIONS, "epochs": 4_000, "target": "box"}))
        far = there / "runs" / run.run_id

        def status() -> str:
            return queries.run(runtime.store, run.run_id).status

        def step() -> int:
            return queries.progress(runtime.store, run.run_id).step

        wait_until(lambda: step() > 0, "its steps arrive", 120.0)
        assert status() == "running"
        server.stop()
        targets = runtime.targets
        assert targets is not None
        wait_until(lambda: targets.trouble("box"), "the silence is noticed")
        before = step()
        assert status() == "running"
        server.start()
        wait_until(lambda: step() > before, "it goes on where it was")
        assert not targets.trouble("box")
        assert not run.has_checkpoint
        runtime.commands.fetch_checkpoints(run.run_id)
        wait_until(lambda: run.has_checkpoint, "its checkpoint is here while it trains")
        assert status() == "running"
        assert inference.states_of(run)
        runtime.commands.stop(run.run_id)
        wait_until(lambda: status() == "stopped", "it has saved")
        saved = step()
        runtime.commands.resume(run.run_id)
        wait_until(lambda: step() > saved, "it continues there")
        assert queries.run(runtime.store, run.run_id).attempt == 2
        runtime.commands.stop(run.run_id)
        wait_until(lambda: status() == "stopped", "it has saved again")
        wait_until(lambda: is_over(targets, run), "its files are here")
        for name in ("journal-0.jsonl", "log.txt"):
            assert digest(run.path / name) == digest(far / name)
        assert {path.name for path in run.samples.iterdir()} == {
            path.name for path in (far / "samples").iterdir()
        }
        assert inference.states_of(run)
        assert not (run.path / "process.json").exists(), "no pid of another host"
    finally:
        runtime.close()


@pytest.mark.usefixtures("server")
def test_a_host_is_added_on_launch_and_its_run_is_watched_and_stopped(
    browser: Browser, home: Home, tmp_path: Path
) -> None:
    home.targets.unlink()
    dashboard = Dashboard(home.path, tmp_path / "dashboard.log", PATH=os.environ["PATH"])
    try:
        page = open_page(browser, f"{dashboard.address}/launch")
        settled(page)
        page.get_by_role("button", name="Train on another machine").click()
        dialog = page.get_by_role("dialog")
        for name, text in {"Name": "box", "Host": HOST, "Folder of the clone": CLONE}.items():
            dialog.get_by_role("textbox", name=name).fill(text)
        dialog.get_by_role("button", name="Add").click()
        expect(page.get_by_text(re.compile("[0-9]+ cores, [0-9]+ GB"))).to_be_visible()
        choose(page, "Workload", "Fully connected GAN")
        fill(page, "textbox", "Epochs (passes over the data)", "4000")
        run = home.run_dir(start(page))
        expect(losses(page)).to_be_visible()
        expect(page.get_by_text("CPU on box")).to_be_visible()
        page.get_by_role("button", name="Stop and save").click()
        expect(page.get_by_text("stopped").first).to_be_visible()
        page.close()
        added = configuration.target(home, "box")
        assert isinstance(added, SshTarget)
        far = Path.home() / added.home
        assert digest(run.trainer_journal()) == digest(
            far / "runs" / run.run_id / "journal-0.jsonl"
        )
        shutil.rmtree(far)
    finally:
        dashboard.stop()
