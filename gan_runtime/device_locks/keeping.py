"""Keeps the locks of a training where others find them, as long as it lives.

Programs that clean /tmp remove files which look old, and a lock on a file that is gone keeps nobody out. So whoever holds locks
makes their files look new once in a while, and takes those again whose files are gone all the same.
"""

from __future__ import annotations

import contextlib
import threading
import time

from gan_runtime.base.errors import DeviceLockError
from gan_runtime.device_locks import holder, lock
from gan_runtime.device_locks.held import Held

ROUND_SECONDS = 600.0  # cleaners wait for hours or days


def begin(held: list[Held]) -> None:
    """In a thread that ends with its process."""
    if held:
        threading.Thread(target=_work, args=(held,), name="device-locks", daemon=True).start()


def look(held: list[Held]) -> list[Held]:
    """What is held afterwards. A lock that somebody else has taken meanwhile, or another process of the same training, is tried again the
    next time."""
    return [_kept(one) for one in held]


def _work(held: list[Held]) -> None:
    while True:
        time.sleep(ROUND_SECONDS)
        held = look(held)


def _kept(one: Held) -> Held:
    with contextlib.suppress(DeviceLockError, OSError):
        if not lock.is_in_place(one.number, one.key):
            number = lock.take(one.key, one.is_shared)
            return one if number is None else Held(number, one.key, one.is_shared)
        lock.freshen(one.number)
        holder.freshen(one.key)
    return one
