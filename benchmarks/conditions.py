"""The conditions of a measurement: whether other processes were active, and whether the commit
describes the code.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gan_runtime.records.home import REPOSITORY

IDLE_LOAD = 0.5  # processes that want to run, on average over the last minute
PATIENCE_S = (
    600.0  # after a row that used two cores, the average needs a minute and a half to fall so far
)
CHECK_INTERVAL_S = 5.0
OUTPUTS = (
    "benchmarks/results",
    "docs/benchmarks.md",
)  # a row writes them, so the next row finds them changed


def load() -> float:
    """Runnable processes, averaged over the last minute."""
    return os.getloadavg()[0]


def wait_until_idle(
    now: Callable[[], float] = load, sleep: Callable[[float], None] = time.sleep
) -> float:
    """Waits until the load is at most IDLE_LOAD, for PATIENCE_S at most. Returns the load at the
    end, which the page reports.
    """
    waited, busy = 0.0, now()
    if busy > IDLE_LOAD:
        print(
            f"load {busy:.2f}: waiting up to {PATIENCE_S / 60:.0f} minutes for an idle machine",
            file=sys.stderr,
        )
    while busy > IDLE_LOAD and waited < PATIENCE_S:
        sleep(CHECK_INTERVAL_S)
        waited, busy = waited + CHECK_INTERVAL_S, now()
    return busy


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
    answer = subprocess.run([*command, *sources], capture_output=True, text=True, check=False)
    return bool(answer.stdout.strip()) if answer.returncode == 0 else None


def in_words(machine: dict[str, Any]) -> str:
    """The disturbances of a row, from its machine record, as text; "" for an idle machine."""
    troubles = [f"load {machine['load_before']:.2f}"] if machine["load_before"] > IDLE_LOAD else []
    if machine.get("uncommitted_changes"):
        troubles.append("modified files")
    return ", ".join(troubles)
