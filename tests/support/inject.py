"""Injects a fault into a process at an exact moment: its Nth operation on a file of the home, its
Nth sync to disk, or its Nth commit.

An environment variable configures the process, which arms itself when it starts; the program under
test is not aware of it. Python's audit hook reports file operations as they begin (open for
writing, rename, remove, mkdir, truncate).
"""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import sys
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

from gan_runtime.records import record

VARIABLE = "GAN_FAULTS_INJECT"
_CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate")
Do = Literal["nothing", "kill", "tear", "cut_short", "io_error", "no_space", "read_only"]
At = Literal["file operation", "sync", "commit"]
_ERRORS = {"io_error": errno.EIO, "no_space": errno.ENOSPC, "read_only": errno.EROFS}
TORN_BYTES = 7  # of an interrupted write


@dataclass(frozen=True)
class Injection:
    """`who`: "trainer", "owner", "person" or "everybody"; `attempt`: the only affected attempt; 0:
    any. `do`: the fault at the `number`-th `at` (from 1). "tear" and "cut_short" act at a sync: the
    next write to that file stores only a few bytes. Then "tear" kills the process, and "cut_short"
    makes the write fail. `clock_s`: offset of the clock of its records.
    """

    who: str = ""
    attempt: int = 0
    do: Do = "nothing"
    at: At = "file operation"
    number: int = 0
    clock_s: float = 0.0

    @property
    def environment(self) -> dict[str, str]:
        """The environment variable that the process reads at its start."""
        return {VARIABLE: json.dumps(asdict(self))}

    @property
    def in_words(self) -> str:
        """The fault as written in the line of a scenario."""
        return f"{self.do} at {self.at} {self.number} of the {self.who}"


class Watcher:
    """Counts the operations of this process on files below a folder, and injects the fault once."""

    def __init__(self, below: Path, injection: Injection) -> None:
        self._below, self._injection = str(below), injection
        self.operations = self.syncs = self.commits = 0
        self._real_sync = os.fsync
        sys.addaudithook(self._operation)
        os.fsync = self._sync  # type: ignore[assignment]

    @property
    def counts(self) -> str:
        """A log line, which benchmarks/faults/scenario.py parses."""
        return f"file operations: {self.operations}, syncs: {self.syncs}"

    def _operation(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not (event in _CHANGES or (event == "open" and _writes(arguments[2]))):
            return
        path = arguments[0]
        if isinstance(path, (str, bytes, os.PathLike)) and os.fsdecode(path).startswith(
            self._below
        ):
            self.operations += 1
            if self._is_now("file operation", self.operations):
                _strike(self._injection.do)

    def _sync(self, descriptor: int) -> None:
        self.syncs += 1
        if self._is_now("sync", self.syncs):
            if self._injection.do in ("tear", "cut_short"):
                _limit_next_write(descriptor, ends=self._injection.do == "tear")
            else:
                _strike(self._injection.do)
        self._real_sync(descriptor)

    def before_commit(self) -> None:
        """Must be called when rows are in a transaction that is not yet committed."""
        self.commits += 1
        if self._is_now("commit", self.commits):
            _strike(self._injection.do)

    def _is_now(self, at: At, number: int) -> bool:
        return (at, number) == (self._injection.at, self._injection.number)


def arm(who: str, below: Path, attempt: int = 0) -> Watcher:
    """Must be called when a process starts; injects nothing if no fault is configured for it."""
    text = os.environ.get(VARIABLE)
    injection = Injection(**json.loads(text)) if text else Injection()
    if injection.who not in (who, "everybody") or injection.attempt not in (0, attempt):
        injection = Injection()
    if injection.clock_s:
        _shift(injection.clock_s)
    return Watcher(below, injection)


def _writes(flags: int) -> bool:
    return bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


def _strike(do: Do) -> None:
    if do in _ERRORS:
        raise OSError(_ERRORS[do], os.strerror(_ERRORS[do]))
    if do == "kill":
        os.kill(os.getpid(), signal.SIGKILL)


def _limit_next_write(descriptor: int, ends: bool) -> None:
    """Makes the next write that enlarges a file fail with a signal, which ends the process or
    restores the limit.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    if ends:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    else:
        signal.signal(signal.SIGXFSZ, lambda *_: resource.setrlimit(resource.RLIMIT_FSIZE, before))
    size = os.fstat(descriptor).st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + TORN_BYTES, resource.RLIM_INFINITY))


def _shift(seconds: float) -> None:
    """Shifts the time of all records of this process, forward or back."""
    real = record.now
    record.now = lambda: real() + timedelta(seconds=seconds)
