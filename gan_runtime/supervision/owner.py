"""Who owns a home: one process at a time holds its lock, supervises its runs and writes
results.duckdb.

The dashboard owns its home as long as it lives, the command line as long as it trains or rebuilds.
An entry next to the lock names the owner, who counts up a number in it every few seconds. Locks of
a shared folder do not always reach from one host to another, so an entry of another host that goes
on counting is an owner too, whatever the lock says. No clock is compared.
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
from gan_runtime.records.run_folder import Pid

PATIENCE_SECONDS = (
    0.5  # `is_owned` of another process holds a free lock for a moment; that is no owner
)
BEAT_SECONDS = 5.0
SILENCE_SECONDS = (
    4 * BEAT_SECONDS
)  # after which an owner on another host is taken for dead, if the lock is free
_MOST_BYTES = 4_096
log = logging.getLogger("gan_runtime")


class HomeOwner(BaseModel):
    """The entry of an owner.

    `url`: where its pages are, if it has any. `beats`: a number that it counts up.
    """

    host: str = Field(max_length=300)
    pid: Pid
    since: datetime
    url: str = Field(default="", max_length=300)
    beats: int = Field(default=0, ge=0)

    @property
    def who(self) -> str:
        """As part of a sentence."""
        since = f"{self.since.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        where = f", at {self.url}" if self.url else ""
        return f"process {self.pid} on host {self.host} since {since}{where}"

    @property
    def is_here(self) -> bool:
        """Whether it is a process of this host, where the lock alone decides."""
        return self.host == platform.node()

    def is_same(self, other: HomeOwner | None) -> bool:
        """Whether both are one process."""
        return other is not None and (self.host, self.pid, self.since) == (
            other.host,
            other.pid,
            other.since,
        )


class Ownership:
    """The home is ours until `release`."""

    def __init__(self, home: Home, lock: FileLock, url: str) -> None:
        self._home, self._lock = home, lock
        self._entry = HomeOwner(
            host=platform.node(), pid=os.getpid(), since=datetime.now(UTC), url=url
        )
        self._write()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="gan-owner", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raises HomeInUseError when another host has taken the home over, HomeError when the home
        is gone.
        """
        self._home.check_is_there()
        other = holder(self._home)
        if other is not None and not self._entry.is_same(other):
            raise HomeInUseError(
                f"{self._home.path} was taken over by {other.who}, as this process was not heard"
                " of: use that one, and end this one."
            )

    def release(self) -> None:
        """Gives the home up."""
        self._ended.set()
        self._thread.join()
        with contextlib.suppress(OSError):
            if self._entry.is_same(holder(self._home)):
                _path(self._home).unlink()
        self._lock.release()

    def _beat(self) -> None:
        while not self._ended.wait(BEAT_SECONDS):
            with contextlib.suppress(
                OSError, HomeError, HomeInUseError
            ):  # a full disk: the lock still holds
                self.check()
                self._entry = self._entry.model_copy(update={"beats": self._entry.beats + 1})
                self._write()

    def _write(self) -> None:
        """In place: a rename would wake everyone who watches the folder of all runs."""
        path = _path(self._home)
        with contextlib.suppress(OSError), path.open("r+b" if path.exists() else "wb") as file:
            file.write(self._entry.model_dump_json().encode())
            file.truncate()


def acquire(home: Home, url: str = "", sleep: Callable[[float], None] = time.sleep) -> Ownership:
    """Becomes the owner of a prepared home. `url`: where its pages are.

    Raises:
        HomeInUseError: another process is the owner; the message names it.
        HomeError: the lock cannot be written, such as on a full disk.
    """
    # Not bound to a thread: the dashboard opens in one and closes in another.
    lock = FileLock(home.owner_lock, thread_local=False)
    try:
        lock.acquire(timeout=PATIENCE_SECONDS)
    except Timeout:
        raise HomeInUseError(_in_use(home, holder(home))) from None
    except OSError as error:
        raise HomeError.not_written(home.owner_lock, error) from error
    last = holder(home)
    if last is not None and not last.is_here:
        if _goes_on(home, last, sleep):
            lock.release()
            raise HomeInUseError(_in_use(home, last))
        log.warning("%s is taken over: its last owner, %s, is silent", home.path, last.who)
    return Ownership(home, lock, url)


def is_owned(home: Home) -> bool:
    """Whether a dashboard or a training owns the home right now."""
    if not home.owner_lock.exists():
        return False
    lock = FileLock(home.owner_lock, thread_local=False)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return True
    except OSError:  # a home that may only be read: the entry of its owner must do
        return holder(home) is not None
    lock.release()
    return False


def holder(home: Home) -> HomeOwner | None:
    """The entry of the owner; None when there is none, or it cannot be read."""
    with contextlib.suppress(OSError, ValidationError):
        return HomeOwner.model_validate_json(run_files.tail(_path(home), _MOST_BYTES))
    return None


def _goes_on(home: Home, last: HomeOwner, sleep: Callable[[float], None]) -> bool:
    """Whether an owner on another host goes on counting while we watch."""
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
        f"{home.path} is in use by {who} (a dashboard or a training): use that one, end it, or"
        " choose another folder with --home DIR."
    )
