"""One lock of one device: an open file that the system frees when every process that holds it is gone."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from gan_runtime.base.errors import DeviceLockError
from gan_runtime.device_locks.folder import folder

SUFFIX = ".lock"
# Never written, so reading is all that anybody needs; a link or a pipe that somebody has put there is not followed nor awaited.
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_READABLE_BY_ALL = 0o444


def take(key: str, shared: bool = False) -> int | None:
    """The number of the open file that holds the lock, closed when a process begins another program; None: somebody has it. `shared`: together
    with others who share it, and with nobody who has it for himself.

    Raises:
        DeviceLockError: the lock cannot be made or opened.
    """
    return _locked(folder() / f"{key}{SUFFIX}", fcntl.LOCK_SH if shared else fcntl.LOCK_EX)


def is_taken(key: str) -> bool:
    """Whether somebody has it for himself right now. Takes it for a moment, together with others who ask, so `take` may have to try again."""
    path = folder() / f"{key}{SUFFIX}"
    if not path.exists():
        return False
    number = _locked(path, fcntl.LOCK_SH)
    if number is None:
        return True
    os.close(number)
    return False


def is_in_place(number: int, key: str) -> bool:
    """Whether an open file of a lock is the one that others find. Raises DeviceLockError, OSError."""
    return _still_there(number, folder() / f"{key}{SUFFIX}")


def freshen(number: int) -> None:
    """Makes the file of a held lock look new. Raises OSError."""
    try:
        os.utime(number)
    except PermissionError:  # another user has made it: reading in it is all that is left
        os.pread(number, 1, 0)


def _locked(path: Path, how: int) -> int | None:
    while True:
        number = _opened(path)
        try:
            fcntl.flock(number, how | fcntl.LOCK_NB)
            if _still_there(number, path):
                return number
        except BlockingIOError:
            os.close(number)
            return None
        except OSError as error:
            os.close(number)
            raise _unusable(path, error) from None
        os.close(number)  # somebody has removed the file meanwhile: a lock on it keeps nobody out


def _opened(path: Path) -> int:
    try:
        try:
            return os.open(path, _FLAGS)
        except FileNotFoundError:
            number = os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL, _READABLE_BY_ALL)
            os.fchmod(number, _READABLE_BY_ALL)  # whatever the mask of this process
            return number
    except FileExistsError:
        return _opened(path)
    except OSError as error:
        raise _unusable(path, error) from None


def _still_there(number: int, path: Path) -> bool:
    try:
        return os.fstat(number).st_ino == path.stat().st_ino
    except FileNotFoundError:
        return False


def _unusable(path: Path, error: OSError) -> DeviceLockError:
    return DeviceLockError(
        f"the lock {path} of a device cannot be used ({error.strerror}): remove it, or ask whose it is."
    )
