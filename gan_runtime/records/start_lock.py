"""The lock of a start, in its run's folder: whether a trainer came to life after the word that it starts.

Who starts a trainer makes this file and locks it before he says so in the journal, and hands it, open, to the trainer, which hands it on to its
workers. The system frees the lock when the last process that has the file is gone, also one that is only being spawned and is
nobody yet. So where the lock is free, and the run's folder is as it was, nobody trains this attempt, and nobody is about to.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ValidationError

from gan_runtime.records import journal
from gan_runtime.records.run_folder import RunDir, Stamp

HANDED_VARIABLE = "GAN_RUNTIME_START_LOCK"
_MOST_BYTES = 64_000


class _Start(BaseModel):
    """What stands in the file. `boot`: start of the machine whose processes the lock tells of; `before`: what trainers have written till then."""

    attempt: int
    boot: str
    before: dict[str, Stamp]


def take(run: RunDir, attempt: int, boot: str) -> int | None:
    """The number of the open, locked file, for a start that nobody has spoken of yet; None where files cannot be made or locked here. `boot`: see
    `processes.boot`.

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


def handed(environment: Mapping[str, str]) -> list[int]:
    """What this process was handed, kept from every program that it begins itself unless that is told to inherit it."""
    word = environment.get(HANDED_VARIABLE, "")
    if not word.isdecimal():
        return []
    try:
        os.set_inheritable(int(word), False)
    except OSError:  # begun by hand, in the environment of a trainer
        return []
    return [int(word)]


def is_without_trace(run: RunDir, attempt: int, boot: str) -> bool:
    """Whether surely no process of that start lives, nor will, and none has written anything. False where nobody can tell: the file is not
    there, or of another attempt, host or start of this machine.
    """
    try:
        number = os.open(run.start_lock, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(number, fcntl.LOCK_SH | fcntl.LOCK_NB)
        start = _Start.model_validate_json(os.read(number, _MOST_BYTES))
        return bool(boot) and (start.attempt, start.boot, start.before) == (attempt, boot, _written(run))
    except (OSError, ValidationError):  # somebody has it; or the file says something else
        return False
    finally:
        os.close(number)


def _written(run: RunDir) -> dict[str, Stamp]:
    """By name, what only a trainer writes to, and what it prints; empty files left out, since a log is opened for it before it lives."""
    stamps: dict[str, Stamp] = {}
    for path in (run.log, run.process_file, run.launcher_journal, *_journals_of_workers(run)):
        with contextlib.suppress(FileNotFoundError):
            status = path.stat()
            if status.st_size:
                stamps[path.name] = (status.st_ino, status.st_size, status.st_mtime_ns)
    return stamps


def _journals_of_workers(run: RunDir) -> list[Path]:
    return [path for path in run.path.glob("journal-*.jsonl") if journal.rank(path.name) is not None]
