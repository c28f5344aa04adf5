"""Processes of this project: what they start with, and naming one so that another of the same
number is not taken for it.

The lock of a start, in its run's folder, tells whether a trainer came to life after the word that
it starts. Who starts a trainer makes this file and locks it before he says so in the journal, and
hands it, open, to the trainer, which hands it on to its workers. The system frees the lock when the
last process that has the file is gone, also one that is only being spawned and is nobody yet. So
where the lock is free, and the run's folder is as it was, nobody trains this attempt, and nobody is
about to.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
from pydantic import BaseModel, ValidationError

from gan_runtime.records import journal
from gan_runtime.records.home import IS_INSTALLED, REPOSITORY
from gan_runtime.records.run_folder import RunDir, Stamp

TRAINER = (  # the module of a trainer, which the processes of the dashboard do not load
    "gan_runtime.worker"
)
SCRATCH_PREFIX = "gan-worker-"  # of a trainer's temporary folder; then its pid
ENDING_SECONDS = 5.0  # for a killed process to be gone
CLOCK_TOLERANCE_S = 2.0  # start times of one process, read twice, differ by rounding
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def environment(base: Mapping[str, str]) -> dict[str, str]:
    """`base` for a child that finds this project from any folder, prints at once, and leaves
    out TensorFlow's small talk.
    """
    places = [*([] if IS_INSTALLED else [str(REPOSITORY)]), base.get("PYTHONPATH", "")]
    return {
        **base,
        "PYTHONUNBUFFERED": "1",
        "TF_CPP_MIN_LOG_LEVEL": base.get("TF_CPP_MIN_LOG_LEVEL", "2"),
        "PYTHONPATH": os.pathsep.join(filter(None, places)),
    }


def identity(pid: int) -> dict[str, Any]:
    """`pid`, `started` and, on Linux, `born`: a pid alone may be given to another process later.

    `born` counts from the start of the machine. `started` is a time of day, which moves when
    somebody sets the clock.
    """
    return {"pid": pid, "started": psutil.Process(pid).create_time(), "born": _born(pid)}


def alive(pid: int, started: float, born: str = "") -> psutil.Process | None:
    """The process of that identity; None when it is gone, a zombie, or another process has
    taken its pid.
    """
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
    """Living processes whose command line has these words one after the other, such as
    folder, attempt and accelerator of a run.
    """
    return [process for process, given in _living() if words in _sequences(given, len(words))]


def started_as(module: str, words: int) -> set[tuple[str, ...]]:
    """Of the living processes that Python has started as a module: what so many words after
    its name are.
    """
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
    """Kills them and waits until they are gone, so that nothing is written any more; one that the
    system holds back, such as at a disk that does not answer, for ENDING_SECONDS at most.
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
    """Whether a process of that number lives; one that has ended and is only waited for does
    not.
    """
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
    """Which start of the machine, and how many ticks after it; empty where Linux's /proc is
    missing or the process is gone.
    """
    try:
        after_name = (
            Path(f"/proc/{pid}/stat")
            .read_text(encoding="utf-8", errors="replace")
            .rpartition(")")[2]
        )
    except OSError:
        return ""
    here = boot()
    return f"{here}:{after_name.split()[19]}" if here else ""  # field 22 of proc(5): starttime


HANDED_VARIABLE = "GAN_RUNTIME_START_LOCK"
_MOST_BYTES = 64_000


class _Start(BaseModel):
    """What stands in the file.

    `boot`: start of the machine whose processes the lock tells of; `before`: what trainers have
    written till then.
    """

    attempt: int
    boot: str
    before: dict[str, Stamp]


def take_start_lock(run: RunDir, attempt: int, boot: str) -> int | None:
    """The number of the open, locked file, for a start that nobody has spoken of yet; None where
    files cannot be made or locked here. `boot`: see `processes.boot`.

    Raises:
        OSError: that of an earlier start cannot be removed, so it would tell of this one.
    """
    run.start_lock.unlink(missing_ok=True)
    start = _Start(attempt=attempt, boot=boot, before=_written(run))
    try:
        number = os.open(run.start_lock, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    except OSError:
        return None
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(number, start.model_dump_json().encode())
    except OSError:
        os.close(number)
        run.start_lock.unlink()
        return None
    return number


def handed_start_locks(environment: Mapping[str, str]) -> list[int]:
    """What this process was handed, kept from every program that it begins itself unless that
    is told to inherit it.
    """
    word = environment.get(HANDED_VARIABLE, "")
    if not word.isdecimal():
        return []
    try:
        os.set_inheritable(int(word), False)
    except OSError:  # begun by hand, in the environment of a trainer
        return []
    return [int(word)]


def is_start_without_trace(run: RunDir, attempt: int, boot: str) -> bool:
    """Whether surely no process of that start lives, nor will, and none has written anything.

    False where nobody can tell: the file is not there, or of another attempt, host or start of this
    machine.
    """
    try:
        number = os.open(run.start_lock, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(number, fcntl.LOCK_SH | fcntl.LOCK_NB)
        start = _Start.model_validate_json(os.read(number, _MOST_BYTES))
        return bool(boot) and (start.attempt, start.boot, start.before) == (
            attempt,
            boot,
            _written(run),
        )
    except (OSError, ValidationError):  # somebody has it; or the file says something else
        return False
    finally:
        os.close(number)


def _written(run: RunDir) -> dict[str, Stamp]:
    """By name, what only a trainer writes to, and what it prints; empty files left out, since
    a log is opened for it before it lives.
    """
    stamps: dict[str, Stamp] = {}
    for path in (run.log, run.process_file, run.launcher_journal, *_journals_of_workers(run)):
        with contextlib.suppress(FileNotFoundError):
            status = path.stat()
            if status.st_size:
                stamps[path.name] = (status.st_ino, status.st_size, status.st_mtime_ns)
    return stamps


def _journals_of_workers(run: RunDir) -> list[Path]:
    return [
        path for path in run.path.glob("journal-*.jsonl") if journal.rank(path.name) is not None
    ]
