"""Processes of the runtime end on request."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil

from gan_runtime.records import processes

# The system takes a while to reclaim this much memory, and until then the process can still finish
# a write.
LARGE = "held = b'x' * 400_000_000; print(len(held), flush=True); input()"


def test_a_killed_process_has_ended_when_the_call_returns() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", LARGE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline().strip() == "400000000"
        process = psutil.Process(child.pid)
        processes.kill([process])
        assert process.status() == psutil.STATUS_ZOMBIE
    finally:
        child.kill()
        child.communicate()


def test_killing_an_ended_process_does_nothing() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    process = psutil.Process(child.pid)
    child.wait()
    processes.kill([process])
    assert not process.is_running()


class SlowlyKilled(psutil.Process):
    """The killer is preempted right after it kills this process, as under load."""

    def kill(self) -> None:
        super().kill()
        time.sleep(0.3)


WORKER = """
import os, pathlib, sys
print("ready", flush=True)
os.read(int(sys.argv[1]), 1)
pathlib.Path(sys.argv[2]).write_text("the other worker disappeared")
"""


def test_worker_cannot_record_that_another_was_killed_just_before_it(tmp_path: Path) -> None:
    """Otherwise the worker would mark a run whose launcher was killed as failed instead of lost."""
    failure, (reading, writing) = tmp_path / "failure", os.pipe()
    first = subprocess.Popen(["sleep", "60"], pass_fds=[writing])
    second = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(reading), str(failure)],
        pass_fds=[reading],
        stdout=subprocess.PIPE,
    )
    try:
        os.close(writing)  # only the first worker has it: the pipe closes when it ends
        assert second.stdout is not None
        assert second.stdout.readline() == b"ready\n"
        processes.kill([SlowlyKilled(first.pid), psutil.Process(second.pid)])
        assert not failure.exists()
    finally:
        os.close(reading)
        for worker in (first, second):
            worker.kill()
            worker.communicate()
