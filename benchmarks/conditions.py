"""The conditions of a measurement: the load of the machine, and whether the commit is the code."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gan_runtime.records.home import REPOSITORY

IDLE_LOAD = 0.5  # runnable processes, averaged over the last minute
# After a row that used two cores, the average needs a minute and a half to fall below IDLE_LOAD.
MAX_WAIT_S = 600.0
CHECK_INTERVAL_S = 5.0
# Each row writes these, so they differ from the commit when the next row begins.
OUTPUTS = ("benchmarks/results", "docs/benchmarks.md")


def load() -> float:
    """Runnable processes, averaged over the last minute."""
    return os.getloadavg()[0]


def wait_until_idle(
    now: Callable[[], float] = load, sleep: Callable[[float], None] = time.sleep
) -> float:
    """Waits until the load is at most IDLE_LOAD, for at most MAX_WAIT_S. Returns the final load,
    which the page reports.
    """
    waited_s, current = 0.0, now()
    if current > IDLE_LOAD:
        print(
            f"load {current:.2f}: waiting up to {MAX_WAIT_S / 60:.0f} minutes for an idle machine",
            file=sys.stderr,
        )
    while current > IDLE_LOAD and waited_s < MAX_WAIT_S:
        sleep(CHECK_INTERVAL_S)
        waited_s, current = waited_s + CHECK_INTERVAL_S, now()
    return current


def changed_since_commit(repository: Path = REPOSITORY) -> bool | None:
    """Whether tracked files other than the benchmarks' own results differ from the commit;
    None outside a repository.
    """
    sources = [".", *(f":(exclude){path}" for path in OUTPUTS)]
    command = [
        "git",
        "--no-optional-locks",
        "-C",
        str(repository),
        "status",
        "--porcelain",
        "--untracked-files=no",
        "--",
    ]
    status = subprocess.run([*command, *sources], capture_output=True, text=True, check=False)
    return bool(status.stdout.strip()) if status.returncode == 0 else None


def in_words(machine: dict[str, Any]) -> str:
    """The disturbances in a row's machine record as text; "" for an idle machine."""
    disturbances = (
        [f"load {machine['load_before']:.2f}"] if machine["load_before"] > IDLE_LOAD else []
    )
    if machine.get("uncommitted_changes"):
        disturbances.append("modified files")
    return ", ".join(disturbances)
