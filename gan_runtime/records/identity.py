"""The identity of a process, and the locks that show whether it runs.

A pid alone identifies no process: it is valid in one pid namespace of one host, and reused there. A
container has its own pid namespace, and can share folders with its host and other containers. There
only locks show what runs: `flock` works across containers, and ends with its process.
"""

from __future__ import annotations

import fcntl
import os
import platform
from pathlib import Path
from typing import Annotated, Any, Self

import psutil
from pydantic import BaseModel, ConfigDict, Field

SILENCE_SECONDS = 600.0  # until a process of another host, invisible here, counts as lost
CLOCK_TOLERANCE_S = 2.0  # start times of one process, read twice, differ by rounding
_BOOT = Path("/proc/sys/kernel/random/boot_id")
Pid = Annotated[int, Field(ge=1, le=2**31 - 1)]  # 0 and negative numbers mean process groups
# Seconds since 1970 that a date can represent, so neither NaN nor 1e300.
Started = Annotated[float, Field(ge=0, le=1e10)]
Word = Annotated[str, Field(max_length=300)]  # a host or a namespace


class ProcessIdentity(BaseModel):
    """`started`: start time by the clock, which can be changed. `born`: boot id and ticks since
    boot. `namespace`: boot id and pid namespace in which `pid` is valid. `host`: its name.

    The last two are missing in records of version 0.2.0, which count as of this host; `born` and
    `namespace` are empty without Linux's /proc.
    """

    model_config = ConfigDict(frozen=True)
    pid: Pid
    started: Started
    born: Word = ""
    namespace: Word = ""
    host: Word = ""

    @classmethod
    def of(cls, pid: int, **more: Any) -> Self:
        """The identity of a running process of this pid namespace. `more`: fields of a subclass."""
        return cls(
            pid=pid,
            started=psutil.Process(pid).create_time(),
            born=_born(pid),
            namespace=own_namespace(),
            host=platform.node(),
            **more,
        )

    @property
    def is_here(self) -> bool:
        """Whether the pid is valid in this process's namespace; nothing is known of another pid."""
        return self.namespace in ("", own_namespace())

    @property
    def is_of_this_boot(self) -> bool:
        """Whether this kernel runs it, here or in another container."""
        return self.is_here or is_of_this_boot(self.namespace)

    def process(self) -> psutil.Process | None:
        """The running process; None if it has exited, is a zombie, its pid was reused, or the pid
        is not valid here.
        """
        if not self.is_here:
            return None
        try:
            process = psutil.Process(self.pid)
            by_clock = abs(process.create_time() - self.started) < CLOCK_TOLERANCE_S
            same = self.born == _born(self.pid) if self.born else by_clock
            return process if same and process.status() != psutil.STATUS_ZOMBIE else None
        except psutil.NoSuchProcess:
            return None

    def is_alive(self, *locks: Path) -> bool | None:
        """Whether the process runs; None if unknown: it is of another host, and its locks are free
        as far as this host sees. `locks`: files that it locks while it runs.
        """
        if self.is_here:
            return self.process() is not None
        if any(map(is_locked, locks)):
            return True
        was_here = self.host == platform.node()  # before a restart of the host
        return False if self.is_of_this_boot or was_here else None


def boot() -> str:
    """The boot id of this machine, also in its containers; empty without Linux's /proc."""
    try:
        return _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def is_of_this_boot(namespace: str) -> bool:
    """Whether a namespace is of this kernel; False if it is unknown."""
    boot_id = namespace.partition(":")[0]
    return bool(boot_id) and boot_id == boot()


def own_namespace() -> str:
    """Boot id and pid namespace of this process; empty without Linux's /proc."""
    boot_id, number = boot(), namespace_number("self")
    return f"{boot_id}:{number}" if boot_id and number else ""


def namespace_number(process: int | str) -> int | None:
    """The pid namespace of a process; None if it is not readable, as of another user."""
    try:
        return Path(f"/proc/{process}/ns/pid").stat().st_ino
    except OSError:
        return None


def is_locked(path: Path) -> bool:
    """Whether any process of this kernel has locked the file. False for a missing file, and where
    locks do not work.
    """
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(number, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(number)
    return False


def _born(pid: int) -> str:
    """Boot id and ticks since boot; empty without Linux's /proc or when the process has ended."""
    try:
        after_name = (
            Path(f"/proc/{pid}/stat")
            .read_text(encoding="utf-8", errors="replace")
            .rpartition(")")[2]
        )
    except OSError:
        return ""
    boot_id = boot()
    return (
        f"{boot_id}:{after_name.split()[19]}" if boot_id else ""
    )  # field 22 of proc(5): starttime
