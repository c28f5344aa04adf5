"""Commands of the command line in separate processes, with none left afterwards."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gan_runtime.records.home import Home

Start = Callable[..., subprocess.Popen[str]]


@contextmanager
def starting(place: Path) -> Iterator[Start]:
    """Starts commands on the home `place`; their runs are stopped at the end."""
    started: list[subprocess.Popen[str]] = []

    def begin(*words: str) -> subprocess.Popen[str]:
        line = [sys.executable, "-m", "gan_runtime", *words, "--home", str(place)]
        started.append(
            subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        )
        return started[-1]

    yield begin
    for run in Home(place).run_dirs():
        run.request_stop("a test")
    for process in started:
        process.kill()
        process.communicate()
