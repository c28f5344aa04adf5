"""Ownership of a home: one process at a time locks it, supervises its runs and writes
results.duckdb.

The dashboard owns its home while it runs, the command line while it trains or rebuilds. An entry
next to the lock names the owner, which increments a counter in it every few seconds. Locks on a
shared file system can be invisible to other hosts, so an entry of another host whose counter
advances also means an owner. No clocks are compared.
"""

from __future__ import annotations

import contextlib
import logging
import os
import platform
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import BaseModel, Field, ValidationError

from gan_runtime.base.errors import HomeError, HomeInUseError
from gan_runtime.records import run_files
from gan_runtime.records.home import Home
from gan_runtime.records.identity import Pid, Word, is_of_this_boot, own_namespace

PATIENCE_SECONDS = 0.5  # `is_owned` in another process briefly takes a free lock
BEAT_SECONDS = 5.0
SILENCE_SECONDS = 4 * BEAT_SECONDS  # until an owner on another host counts as ended
_MOST_BYTES = 4_096
log = logging.getLogger("gan_runtime")


class HomeOwner(BaseModel):
    """The entry of an owner. `url`: URL of its pages, or "". `beats`: its counter. `namespace`: as
    of `ProcessIdentity`.
    """

    host: Word
    pid: Pid
    namespace: Word = ""
    since: datetime
    url: str = Field(default="", max_length=300)
    beats: int = Field(default=0, ge=0)

    @property
    def who(self) -> str:
        """The owner, for a sentence."""
        since = f"{self.since.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        where = f", at {self.url}" if self.url else ""
        on = f"on host {self.host}"
        if self.is_here and self.namespace not in ("", own_namespace()):
            on = f"in another container (host name {self.host})"
        return f"process {self.pid} {on} since {since}{where}"

    @property
    def is_here(self) -> bool:
        """Whether the owner is on this host or in a container of it, where the lock alone
        decides.
        """
        return self.host == platform.node() or is_of_this_boot(self.namespace)

    def is_same(self, other: HomeOwner | None) -> bool:
        """Whether both are the same process."""
        return other is not None and (self.host, self.pid, self.since) == (
            other.host,
            other.pid,
            other.since,
        )


class Ownership:
    """Ownership of a home until `release`."""

    def __init__(self, home: Home, lock: FileLock, url: str) -> None:
        self._home, self._lock = home, lock
        self._entry = HomeOwner(
            host=platform.node(),
            pid=os.getpid(),
            namespace=own_namespace(),
            since=datetime.now(UTC),
            url=url,
        )
        self._write()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="gan-owner", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raises HomeInUseError if another host took over, HomeError if the home is missing."""
        self._home.check_is_there()
        other = holder(self._home)
        if other is not None and not self._entry.is_same(other):
            raise HomeInUseError(
                f"{self._home.path} was taken over by {other.who}, because this process did not"
                " respond: use that process, and end this one."
            )

    def release(self) -> None:
        """Ends the ownership."""
        self._ended.set()
        self._thread.join()
        with contextlib.suppress(OSError):
            if self._entry.is_same(holder(self._home)):
                _path(self._home).unlink()
        self._lock.release()

    def _beat(self) -> None:
        while not self._ended.wait(BEAT_SECONDS):
            # On a full disk the lock remains.
            with contextlib.suppress(OSError, HomeError, HomeInUseError):
                self.check()
                self._entry = self._entry.model_copy(update={"beats": self._entry.beats + 1})
                self._write()

    def _write(self) -> None:
        """Writes in place, since a rename would change the modification time of the
        runs' folder.
        """
        path = _path(self._home)
        with contextlib.suppress(OSError), path.open("r+b" if path.exists() else "wb") as file:
            file.write(self._entry.model_dump_json().encode())
            file.truncate()


def acquire(home: Home, url: str = "", sleep: Callable[[float], None] = time.sleep) -> Ownership:
    """Becomes the owner of a prepared home. `url`: URL of the owner's pages.

    Raises:
        HomeInUseError: another process is the owner; the message names it.
        HomeError: the lock cannot be written, such as on a full disk.
    """
    # The dashboard opens a home in one thread and closes it in another.
    lock = FileLock(home.owner_lock, thread_local=False)
    try:
        lock.acquire(timeout=PATIENCE_SECONDS)
    except Timeout:
        raise HomeInUseError(_in_use(home, holder(home))) from None
    except OSError as error:
        raise HomeError.not_written(home.owner_lock, error) from error
    last = holder(home)
    if last is not None and not last.is_here:
        if _is_counting(home, last, sleep):
            lock.release()
            raise HomeInUseError(_in_use(home, last))
        log.warning("taking over %s: its last owner, %s, does not respond", home.path, last.who)
    return Ownership(home, lock, url)


def is_owned(home: Home) -> bool:
    """Whether a dashboard or a training currently owns the home."""
    if not home.owner_lock.exists():
        return False
    lock = FileLock(home.owner_lock, thread_local=False)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return True
    except OSError:  # a read-only home
        return holder(home) is not None
    lock.release()
    return False


def holder(home: Home) -> HomeOwner | None:
    """The entry of the owner; None without a readable entry."""
    with contextlib.suppress(OSError, ValidationError):
        return HomeOwner.model_validate_json(run_files.tail(_path(home), _MOST_BYTES))
    return None


def _is_counting(home: Home, last: HomeOwner, sleep: Callable[[float], None]) -> bool:
    """Whether the counter of an owner on another host advances within SILENCE_SECONDS."""
    for _ in range(round(SILENCE_SECONDS)):
        sleep(1.0)
        now = holder(home)
        if now is None and not _path(home).exists():
            return False
        if now is None or now != last:
            return True
    return False


def _path(home: Home) -> Path:
    return home.owner_lock.with_suffix(".json")


def _in_use(home: Home, other: HomeOwner | None) -> str:
    who = other.who if other is not None else "another process"
    return (
        f"{home.path} is in use by {who} (a dashboard or a training): use that process, end it, or"
        " choose another folder with --home DIR."
    )
