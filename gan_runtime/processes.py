"""Naming a process so that another one of the same number is not taken for it."""

from __future__ import annotations

import psutil

CLOCK_TOLERANCE_S = 2.0  # start times of one process, read twice, differ by rounding


def identity(pid: int) -> dict[str, int | float]:
    """`pid` and `started`: a pid alone may be given to another process later."""
    return {"pid": pid, "started": psutil.Process(pid).create_time()}


def alive(pid: int, started: float) -> psutil.Process | None:
    """The process of that pid and start time; None when it is gone, a zombie, or another process has taken its pid."""
    try:
        process = psutil.Process(pid)
        same = abs(process.create_time() - started) < CLOCK_TOLERANCE_S
        return process if same and process.status() != psutil.STATUS_ZOMBIE else None
    except psutil.NoSuchProcess:
        return None
