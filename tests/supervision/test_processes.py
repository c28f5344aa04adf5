"""Processes of the runtime end when they are told to."""

from __future__ import annotations

import subprocess
import sys

import psutil

from gan_runtime.records import processes

# The system takes a while to take so much memory back, and until then the process can still finish
# what it was writing.
LARGE = "held = b'x' * 400_000_000; print(len(held), flush=True); input()"


def test_who_was_killed_is_gone_when_the_killing_ends() -> None:
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


def test_who_is_gone_already_is_killed_without_a_word() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    process = psutil.Process(child.pid)
    child.wait()
    processes.kill([process])
    assert not process.is_running()
