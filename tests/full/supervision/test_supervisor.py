"""Owners that are killed and replaced, and behavior specific to TensorFlow trainers: real processes
and real signals.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gan_runtime.base.errors import HomeInUseError, RunStateError
from gan_runtime.commands.runtime import Runtime
from gan_runtime.data import preparations
from gan_runtime.data.preparations import PreparationRequest
from gan_runtime.hardware.hosts import Host
from gan_runtime.records import run_folder
from gan_runtime.records.home import REPOSITORY, Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import RunSpec
from gan_runtime.store import queries
from tests.support import own_pictures
from tests.support.asking import ask
from tests.support.trainers import end_trainers

Wait = Callable[..., Any]
SHORT = {
    "workload": "mlp_gan",
    "replicas": 2,
    "batch_size_global": 8,
    "epochs": 3,
    "precision": "float32",
}
LONG = {**SHORT, "epochs": 2_000, "steps_per_loop": 2}


@pytest.fixture
def runtime(home: Home, host: Host, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runtime]:
    """The owner of the home on a fixed host, with regular trainers; they end with the test."""
    monkeypatch.setattr("gan_runtime.hardware.hosts.probe", lambda: host)
    opened = Runtime.open(home)
    yield opened
    end_trainers(home)
    opened.close()


def status(runtime: Runtime, run: RunDir) -> str:
    return queries.run(runtime.store, run.run_id).status


def step(runtime: Runtime, run: RunDir) -> int:
    return queries.progress(runtime.store, run.run_id).step


def pid(run: RunDir) -> int:
    identity = run.process()
    assert identity is not None
    return identity.pid


def every_step_once(runtime: Runtime, run: RunDir, last_step: int) -> bool:
    counted = runtime.store.rows(
        "SELECT count(*), count(DISTINCT step), min(step), max(step) FROM scalars WHERE run_id = ?"
        " AND metric = 'loss_generator'",
        [run.run_id],
    )
    return counted == [(last_step, last_step, 1, last_step)]


def prepare(home: Home, name: str, rows: int) -> str:
    """Prepares a data set of gray images of 28 pixels; returns its digest."""
    source = home.path / f"{name}.zip"
    source.write_bytes(own_pictures.noise(rows))
    options = {"pixels": "28", "color": "gray", "held_out_percent": "0"}
    manifest = preparations.prepare(
        home, PreparationRequest("pictures", name, source, options), lambda *_: None
    )
    assert manifest is not None
    return manifest.content


def test_killed_trainer_is_lost_and_resumes_only_with_the_same_data(
    runtime: Runtime, wait_until: Wait
) -> None:
    steps_per_epoch, options = (
        28,
        {**SHORT, "batch_size_global": 64, "epochs": 12, "steps_per_loop": 2},
    )
    content = prepare(runtime.home, "photos", steps_per_epoch * 64)
    run = runtime.commands.submit(RunSpec.parse({**options, "dataset": "photos"}))
    wait_until(lambda: step(runtime, run) > 2 * steps_per_epoch, "the run has a checkpoint")
    os.killpg(pid(run), signal.SIGKILL)
    wait_until(lambda: status(runtime, run) == "lost", "the loss is noticed", 20)
    assert "killed by signal 9" in queries.run(runtime.store, run.run_id).note
    assert run_folder.data_content(run) == content
    photos, earlier = runtime.home.data / "photos", runtime.home.data / "earlier"
    photos.rename(earlier)
    other = prepare(runtime.home, "photos", 100)
    with pytest.raises(RunStateError) as refused:
        runtime.commands.resume(run.run_id)
    assert (
        str(refused.value)
        == f"run {run.run_id} was trained on another content of data set photos ({content[:16]},"
        f" now {other[:16]}): prepare the earlier one again, or start a new run."
    )
    shutil.rmtree(photos)
    earlier.rename(photos)
    runtime.commands.resume(run.run_id)
    wait_until(lambda: status(runtime, run) == "finished", "the resumed run finishes")
    assert every_step_once(runtime, run, 12 * steps_per_epoch)


OWNER = """
import sys, threading
from pathlib import Path
from gan_runtime.records.home import Home
from gan_runtime.commands.runtime import Runtime
from tests.support.trainers import toys
runtime = Runtime.open(Home(Path(sys.argv[1])), starter=toys())
print("open", flush=True)
threading.Event().wait()
"""


def test_training_continues_while_its_owner_is_killed_or_replaced(
    home: Home, host: Host, wait_until: Wait
) -> None:
    run = ask(home, host).submit(RunSpec.parse(LONG))
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(home.path)], env=environment, stdout=subprocess.PIPE
    )
    try:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"open\n"
        with pytest.raises(HomeInUseError, match=f"in use by process {owner.pid}"):
            Runtime.open(home)
        wait_until(
            lambda: (
                run.trainer_journal().exists()
                and b'"kind":"scalars"' in run.trainer_journal().read_bytes()
            ),
            "steps",
        )
    finally:
        owner.kill()
        owner.wait()
    trainer = pid(run)
    for _ in range(2):  # two owners: the first one is closed while the run trains
        runtime = Runtime.open(home)
        try:
            assert status(runtime, run) == "running"
            first_step = step(runtime, run)
            wait_until(
                lambda runtime=runtime, first_step=first_step: step(runtime, run) > first_step,
                "the run trains on",
            )
        finally:
            runtime.close()
    runtime = Runtime.open(home)
    try:
        runtime.commands.stop(run.run_id)
        wait_until(lambda: status(runtime, run) == "stopped", "the run stops for its new owner")
        assert (pid(run), queries.run(runtime.store, run.run_id).attempt) == (trainer, 1)
        assert every_step_once(runtime, run, step(runtime, run))
    finally:
        end_trainers(home)
        runtime.close()


def test_trainer_without_data_fails_with_the_reason(
    home: Home,
    host: Host,
    wait_until: Wait,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    write_idx: Callable[[Path, np.ndarray], Path],
) -> None:
    """The images exist when the run is queued, but not when an owner of the home starts it."""
    images = write_idx(
        tmp_path / "mnist" / "train-images-idx3-ubyte", np.zeros((128, 28, 28), np.uint8)
    )
    monkeypatch.setenv("GAN_DATA_DIR", str(tmp_path))
    run = ask(home, host).submit(RunSpec.parse({**SHORT, "dataset": "mnist"}))
    images.unlink()
    runtime = Runtime.open(home)
    try:
        wait_until(lambda: status(runtime, run) == "failed", "the run fails")
        assert "has no mnist images" in queries.run(runtime.store, run.run_id).note
    finally:
        end_trainers(home)
        runtime.close()
