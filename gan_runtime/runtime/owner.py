"""Who owns a home: one process at a time holds its lock, supervises its runs and writes results.duckdb.

The dashboard owns its home as long as it lives, the command line as long as it trains or rebuilds.
"""

from __future__ import annotations

import os
from pathlib import Path

from filelock import FileLock, Timeout

from gan_runtime.errors import HomeInUseError
from gan_runtime.home import Home

PATIENCE_SECONDS = 0.5  # `is_owned` of another process holds a free lock for a moment; that is no owner


def acquire(home: Home) -> FileLock:
    """Becomes the owner of a prepared home; releasing the lock gives it up.

    Raises:
        HomeInUseError: another process is the owner; the message names it.
    """
    # Not bound to a thread: the dashboard opens in one and closes in another.
    lock = FileLock(home.owner_lock, thread_local=False)
    try:
        lock.acquire(timeout=PATIENCE_SECONDS)
    except Timeout:
        raise HomeInUseError(_in_use(home)) from None
    _note(home).write_text(str(os.getpid()), encoding="utf-8")
    return lock


def is_owned(home: Home) -> bool:
    """Whether a dashboard or a training owns the home right now."""
    if not home.owner_lock.exists():
        return False
    lock = FileLock(home.owner_lock, thread_local=False)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return True
    lock.release()
    return False


def _note(home: Home) -> Path:
    return home.owner_lock.with_suffix(".pid")


def _in_use(home: Home) -> str:
    try:
        who = f"process {_note(home).read_text(encoding='utf-8')}"
    except OSError:
        who = "another process"
    return f"{home.path} is in use by {who} (a dashboard or a training): use that one, end it, or choose another folder with --home DIR."
