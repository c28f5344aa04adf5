"""Processes of this project: their environment, temporary folders, how they are killed, and the
start lock.

The start lock in a run's folder shows whether a trainer was spawned. The owner locks the file
before the journal says "starting", and the trainer and its workers inherit it. The system frees the
lock when the last process that has the file open ends, even one between fork and exec. So a free
lock and an unchanged folder prove that no trainer of this attempt exists or will.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import psutil
from pydantic import BaseModel, ValidationError

from gan_runtime.records import identity, journal
from gan_runtime.records.home import IS_INSTALLED, REPOSITORY
from gan_runtime.records.run_folder import RunDir, Stamp

TRAINER = "gan_runtime.worker"  # the dashboard's processes must not import this module
SCRATCH_PREFIX = "gan-scratch-"  # of the temporary folder of a process
ENDING_SECONDS = 5.0  # time that `kill` waits for a killed process
LOW_PRIORITY = 10  # niceness: a tenth of the time of a normal process that competes for a core
_SESSION = Path("/proc/self/autogroup")


def command(module: str, *words: str) -> list[str]:
    """The command of a child that runs a module of this project, in `environment`.

    -P, since Python would first search the current folder of the user, where another checkout or a
    file such as random.py replaces modules.
    """
    return [sys.executable, "-P", "-m", module, *words]


def environment(base: Mapping[str, str]) -> dict[str, str]:
    """`base` for a child that imports this project from any folder, prints unbuffered, and
    silences TensorFlow's start messages.
    """
    places = [] if IS_INSTALLED else [str(REPOSITORY)]
    places += [
        place for place in base.get("PYTHONPATH", "").split(os.pathsep) if place not in places
    ]
    return {
        **base,
        "PYTHONUNBUFFERED": "1",
        "TF_CPP_MIN_LOG_LEVEL": base.get("TF_CPP_MIN_LOG_LEVEL", "2"),
        "PYTHONPATH": os.pathsep.join(filter(None, places)),
    }


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """A temporary folder that this process locks until it is removed. After a kill the lock is
    free, and an owner of a home removes the folder; a pid would not show a process of another
    container that shares /tmp.
    """
    folder = Path(tempfile.mkdtemp(prefix=f".{SCRATCH_PREFIX}"))  # no owner finds it unlocked
    lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # a disk without locks, where it stays hidden
            fcntl.flock(lock, fcntl.LOCK_EX)
            folder = folder.rename(folder.with_name(folder.name.removeprefix(".")))
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def abandoned_scratch_folders() -> list[Path]:
    """The temporary folders of processes that were killed, on this host or in its containers."""
    folders = Path(tempfile.gettempdir()).glob(f"{SCRATCH_PREFIX}*")
    return [folder for folder in folders if _is_abandoned(folder)]


def remove_abandoned_scratch_folders() -> None:
    """Removes the temporary folders of processes that were killed."""
    for folder in abandoned_scratch_folders():
        shutil.rmtree(folder, ignore_errors=True)  # of another user, or removed


def _is_abandoned(folder: Path) -> bool:
    with contextlib.suppress(OSError):  # locked, of another user, or on a disk without locks
        number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(number, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return True
        finally:
            os.close(number)
    return False


def lower_priority() -> None:
    """Gives other processes of this host priority over this one and the threads that it starts from
    now on.
    """
    with contextlib.suppress(OSError, psutil.Error):
        psutil.Process().nice(max(LOW_PRIORITY, psutil.Process().nice()))
    # Linux shares time between sessions first, then between their processes.
    with contextlib.suppress(OSError):
        _SESSION.write_text(str(LOW_PRIORITY), encoding="ascii")


def usable_cores() -> int:
    """The cores on which this process may run, such as those that Slurm gave it."""
    process = psutil.Process()
    if hasattr(process, "cpu_affinity"):  # Linux, Windows
        return len(process.cpu_affinity())
    return os.cpu_count() or 1


ROOM_FOR_WORDS = "." * 2_000
_STATUS = Path("/proc/self/stat")
_BEGIN, _END = 45, 46  # of its command line in memory: fields 48 and 49, counted after the name


def rename(words: Sequence[str]) -> bool:
    """Gives this process another command line in the process table, so that `started_for` and
    `started_as` find it. False if it is longer than the present one, or if this is not Linux.
    """
    try:
        fields = _STATUS.read_text(encoding="ascii", errors="replace").rpartition(") ")[2].split()
    except OSError:
        return False
    begin, end = int(fields[_BEGIN]), int(fields[_END])
    line = b"".join(os.fsencode(word) + b"\0" for word in words)
    if not 0 < begin <= end - len(line):
        return False
    ctypes.memmove(begin, line.ljust(end - begin, b"\0"), end - begin)
    return True


def started_for(*words: str) -> list[psutil.Process]:
    """Running processes whose command line contains these words in sequence, such as folder,
    attempt and accelerator of a run.
    """
    return [
        process
        for process, line in _running()
        if words in _sequences(line, len(words)) and _is_of_our_namespace(process)
    ]


def started_as(module: str, words: int) -> set[tuple[str, ...]]:
    """The first `words` arguments of each running process started as `-m module`."""
    return {
        part[2:]
        for process, line in _running()
        for part in _sequences(line, words + 2)
        if part[:2] == ("-m", module) and _is_of_our_namespace(process)
    }


def _running() -> Iterator[tuple[psutil.Process, list[str]]]:
    """Running processes and their command lines, without the empty rest of a renamed one."""
    for process in psutil.process_iter(["cmdline", "status"]):
        if process.info["status"] != psutil.STATUS_ZOMBIE:
            yield process, "\0".join(process.info["cmdline"] or []).rstrip("\0").split("\0")


def _is_of_our_namespace(process: psutil.Process) -> bool:
    """False for a process of a container, where a path can be another folder. True if unknown."""
    number = identity.namespace_number(process.pid)
    return number in (None, identity.namespace_number("self"))


def _sequences(words: list[str], length: int) -> list[tuple[str, ...]]:
    return [tuple(words[begin : begin + length]) for begin in range(len(words) - length + 1)]


def kill(doomed: Iterable[psutil.Process]) -> None:
    """Kills the processes and waits up to ENDING_SECONDS until they have ended.

    All are suspended before the first is killed. Otherwise a worker could notice that another
    worker disappeared, and record a failure before it is killed itself.
    """
    suspended = [process for process in doomed if _signaled(process.suspend)]
    killed = [process for process in suspended if _signaled(process.kill)]
    deadline = time.monotonic() + ENDING_SECONDS
    while any(map(_lives, killed)) and time.monotonic() < deadline:
        time.sleep(0.005)


def _signaled(signal: Callable[[], None]) -> bool:
    """False for a process that has ended or belongs to another user."""
    try:
        signal()
    except psutil.Error:
        return False
    return True


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


HANDED_VARIABLE = "GAN_RUNTIME_START_LOCK"
_MOST_BYTES = 64_000


class _Start(BaseModel):
    """The content of the start lock. `boot`: boot id; `before`: stamps of trainer files at the
    start.
    """

    attempt: int
    boot: str
    before: dict[str, Stamp]


def take_start_lock(run: RunDir, attempt: int, boot: str) -> int | None:
    """The descriptor of the new, locked file; None if files cannot be created or locked here.

    Raises OSError if the lock of an earlier start cannot be removed.
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
    """The descriptors of start locks that this process inherited. Its children do not inherit them
    by default.
    """
    word = environment.get(HANDED_VARIABLE, "")
    if not word.isdecimal():
        return []
    try:
        os.set_inheritable(int(word), False)
    except OSError:  # started manually with the environment of a trainer
        return []
    return [int(word)]


def is_start_without_trace(run: RunDir, attempt: int, boot: str) -> bool:
    """Whether no process of that start exists, will exist, or has written anything.

    False if uncertain: there is no file, or one of another attempt, host or boot.
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
    except (OSError, ValidationError):  # the file is locked, or no start lock
        return False
    finally:
        os.close(number)


def _written(run: RunDir) -> dict[str, Stamp]:
    """Stamps of the files that only a trainer writes. Empty files are left out, since the owner
    opens the log before the trainer runs.
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
