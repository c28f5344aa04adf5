"""Processes of this project: what they start with, and naming one so that another of the same number is not taken for it."""

from __future__ import annotations

import os
from collections.abc import Mapping

import psutil

from gan_runtime.home import REPOSITORY

CLOCK_TOLERANCE_S = 2.0  # start times of one process, read twice, differ by rounding


def environment(base: Mapping[str, str]) -> dict[str, str]:
    """`base` for a child that finds this project from any folder, prints at once, and leaves out TensorFlow's small talk."""
    return {
        **base,
        "PYTHONUNBUFFERED": "1",
        "TF_CPP_MIN_LOG_LEVEL": base.get("TF_CPP_MIN_LOG_LEVEL", "2"),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(REPOSITORY), base.get("PYTHONPATH", "")])),
    }


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
