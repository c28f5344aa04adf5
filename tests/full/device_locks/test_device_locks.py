"""Device locks when some processes of a training run are killed: a real owner, launcher and
workers.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest

from gan_runtime.device_locks import locks
from gan_runtime.records import processes
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from tests.support import toy_trainer
from tests.support.trainers import end_trainers, processes_of

Wait = Callable[..., Any]
NewRun = Callable[..., RunDir]
TOY = {"workload": "mlp_gan", "batch_size_global": 8, "epochs": 2_000, "precision": "float32"}


@pytest.fixture
def two(home: Home, new_run: NewRun) -> Iterator[RunDir]:
    """A run with two workers; its remaining processes end with the test."""
    yield new_run("quick-0001", workers=2, **TOY)
    end_trainers(home)


def test_device_is_locked_until_the_last_training_process_exits(
    home: Home, two: RunDir, wait_until: Wait
) -> None:
    """Owner, launcher and one of the workers are killed; the other worker stalls and keeps the
    device.
    """
    command = [
        sys.executable,
        "-m",
        "tests.support.owner",
        str(home.path),
        "60",
        toy_trainer.MODULE,
    ]
    with subprocess.Popen(command, env=processes.environment(os.environ)) as owner:
        wait_until(
            lambda: two.process() and len(processes_of(two)) == 3, "launcher and workers train"
        )
        owner.kill()
    assert locks.is_taken("cpu")
    launcher, first, second = processes_of(two)
    second.send_signal(signal.SIGSTOP)
    wait_until(lambda: second.status() == psutil.STATUS_STOPPED, "a worker stands still")
    launcher.kill()
    first.kill()
    wait_until(lambda: len(processes_of(two)) == 1, "one is left")
    assert locks.take("cpu") is None
    second.kill()
    wait_until(lambda: not locks.is_taken("cpu"), "the device is free")
