"""A dashboard process on a stored home, and windows that show it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil

from benchmarks import dashboard
from gan_runtime.records.home import REPOSITORY, Home

EXIT_SECONDS = 20.0


@contextmanager
def served(home: Home, script: str = "app.py") -> Iterator[tuple[psutil.Process, str]]:
    """The process and its address, once it responds; ends it afterward."""
    server, address = dashboard.serve(home, script)
    try:
        yield psutil.Process(server.pid), address
    finally:
        server.terminate()
        try:
            server.wait(EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


class Crowd:
    """Windows on one page, in one process."""

    def __init__(self, address: str, page: str, query: str, sessions: int) -> None:
        command = [sys.executable, "-m", "benchmarks.load.client", address, page, query]
        self._process = subprocess.Popen(
            [*command, "--sessions", str(sessions)],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        self._process.stdout.readline()  # printed once all are open

    def close(self) -> dict[str, Any]:
        """Closes all windows; returns the counts of their refreshes."""
        output, _ = self._process.communicate()
        return dict(json.loads(output))

    def kill(self) -> None:
        """Kills the windows after a failure."""
        self._process.kill()
        self._process.wait()


@contextmanager
def crowd(address: str, run_id: str, sessions: int) -> Iterator[Crowd]:
    """Windows on the page of one run; kills them afterward."""
    windows = Crowd(address, "run", f"run={run_id}", sessions)
    try:
        yield windows
    finally:
        windows.kill()


def cpu_seconds(process: psutil.Process) -> float:
    """Processor seconds of a process so far."""
    times = process.cpu_times()
    return float(times.user + times.system)


def wait_until_idle(process: psutil.Process, share: float = 0.15, timeout_s: float = 60.0) -> None:
    """Waits until the process uses less than `share` of a core for a second."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        before = cpu_seconds(process)
        time.sleep(1.0)
        if cpu_seconds(process) - before < share:
            return
