"""A dashboard in a separate process on a stored home, and windows that show it."""

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

ENDING_SECONDS = 20.0


@contextmanager
def served(home: Home, script: str = "app.py") -> Iterator[tuple[psutil.Process, str]]:
    """The process and its address, once it answers; ended afterwards."""
    server, address = dashboard.serve(home, script)
    try:
        yield psutil.Process(server.pid), address
    finally:
        server.terminate()
        try:
            server.wait(ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


class Crowd:
    """Windows on one page; `leave` returns their counts after closing them."""

    def __init__(self, address: str, page: str, query: str, sessions: int) -> None:
        command = [sys.executable, "-m", "benchmarks.load.client", address, page, query]
        self._process = subprocess.Popen(
            [*command, "--sessions", str(sessions)],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        self._process.stdout.readline()  # they have come

    def leave(self) -> dict[str, Any]:
        """Closes all windows."""
        output, _ = self._process.communicate()
        return dict(json.loads(output))

    def kill(self) -> None:
        """Kills the windows after a failure."""
        self._process.kill()
        self._process.wait()


@contextmanager
def crowd(address: str, run_id: str, sessions: int) -> Iterator[Crowd]:
    """Windows on Live of one run; killed if they have not left."""
    windows = Crowd(address, "run", f"run={run_id}", sessions)
    try:
        yield windows
    finally:
        windows.kill()


def busy_seconds(process: psutil.Process) -> float:
    """The processor seconds so far."""
    times = process.cpu_times()
    return float(times.user + times.system)


def wait_until_quiet(
    process: psutil.Process, share: float = 0.15, patience_s: float = 60.0
) -> None:
    """Returns once the process takes less than this share of a core for a second."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        before = busy_seconds(process)
        time.sleep(1.0)
        if busy_seconds(process) - before < share:
            return
