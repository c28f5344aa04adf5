"""Processes of this project: what they start with, and naming one so that another of the same number is not taken for it."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

from gan_runtime.records.home import IS_INSTALLED, REPOSITORY

TRAINER = "gan_runtime.worker"  # the module of a trainer, which the processes of the dashboard do not load
SCRATCH_PREFIX = "gan-worker-"  # of a trainer's temporary folder; then its pid
ENDING_SECONDS = 5.0  # for a killed process to be gone
CLOCK_TOLERANCE_S = 2.0  # start times of one process, read twice, differ by rounding
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def environment(base: Mapping[str, str]) -> dict[str, str]:
    """`base` for a child that finds this project from any folder, prints at once, and leaves out TensorFlow's small talk."""
    places = [*([] if IS_INSTALLED else [str(REPOSITORY)]), base.get("PYTHONPATH", "")]
    return {
        **base,
        "PYTHONUNBUFFERED": "1",
        "TF_CPP_MIN_LOG_LEVEL": base.get("TF_CPP_MIN_LOG_LEVEL", "2"),
        "PYTHONPATH": os.pathsep.join(filter(None, places)),
    }


def identity(pid: int) -> dict[str, Any]:
    """`pid`, `started` and, on Linux, `born`: a pid alone may be given to another process later.

    `born` counts from the start of the machine. `started` is a time of day, which moves when somebody sets the clock.
    """
    return {"pid": pid, "started": psutil.Process(pid).create_time(), "born": _born(pid)}


def alive(pid: int, started: float, born: str = "") -> psutil.Process | None:
    """The process of that identity; None when it is gone, a zombie, or another process has taken its pid."""
    try:
        process = psutil.Process(pid)
        by_clock = abs(process.create_time() - started) < CLOCK_TOLERANCE_S
        same = born == _born(pid) if born else by_clock
        return process if same and process.status() != psutil.STATUS_ZOMBIE else None
    except psutil.NoSuchProcess:
        return None


def boot() -> str:
    """Which start of which machine this is; empty where Linux's /proc is missing."""
    try:
        return _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def started_for(*words: str) -> list[psutil.Process]:
    """Living processes whose command line has these words one after the other, such as folder, attempt and accelerator of a run."""
    return [process for process, given in _living() if words in _sequences(given, len(words))]


def started_as(module: str, words: int) -> set[tuple[str, ...]]:
    """Of the living processes that Python has started as a module: what so many words after its name are."""
    found = {given for _, line in _living() for given in _sequences(line, words + 2)}
    return {given[2:] for given in found if given[:2] == ("-m", module)}


def _living() -> Iterator[tuple[psutil.Process, list[str]]]:
    """Processes and their command lines."""
    for process in psutil.process_iter(["cmdline", "status"]):
        if process.info["status"] != psutil.STATUS_ZOMBIE:
            yield process, process.info["cmdline"] or []


def _sequences(words: list[str], length: int) -> list[tuple[str, ...]]:
    return [tuple(words[begin : begin + length]) for begin in range(len(words) - length + 1)]


def kill(doomed: Iterable[psutil.Process]) -> None:
    """Kills them and waits until they are gone, so that nothing is written any more; one that the system holds back, such as at a disk
    that does not answer, for ENDING_SECONDS at most.
    """
    killed = []
    for process in doomed:
        with contextlib.suppress(psutil.Error):  # gone, or of another person
            process.kill()
            killed.append(process)
    deadline = time.monotonic() + ENDING_SECONDS
    while any(map(_lives, killed)) and time.monotonic() < deadline:
        time.sleep(0.005)


def is_there(pid: int) -> bool:
    """Whether a process of that number lives; one that has ended and is only waited for does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except (psutil.NoSuchProcess, OverflowError):
        return False
    except psutil.Error:  # of another person
        return True


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _born(pid: int) -> str:
    """Which start of the machine, and how many ticks after it; empty where Linux's /proc is missing or the process is gone."""
    try:
        after_name = (
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2]
        )
    except OSError:
        return ""
    here = boot()
    return f"{here}:{after_name.split()[19]}" if here else ""  # field 22 of proc(5): starttime
