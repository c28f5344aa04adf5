"""Free space, looked at before something is written that would not fit."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from gan_runtime.errors import GanRuntimeError, HomeError

# What journals and results.duckdb need to go on: below it a run would be queued that nobody can start or follow.
LEAST_BYTES = 20_000_000
_FULL = (errno.ENOSPC, errno.EDQUOT)


def require(folder: Path, size: int, purpose: str) -> None:
    """Raises HomeError when fewer than `size` bytes are free on the disk of the existing `folder`."""
    free = shutil.disk_usage(folder).free
    if free < size:
        raise HomeError(
            f"the disk of {folder} has {free / 1e6:,.0f} MB left, but {purpose} needs {size / 1e6:,.0f} MB: make space on it."
        )


def is_full(error: BaseException) -> bool:
    """Whether the system refused to write for want of space. Other libraries tell it in their text only."""
    if isinstance(error, OSError):
        return error.errno in _FULL
    return any(f"(os error {number})" in str(error) or os.strerror(number) in str(error) for number in _FULL)


@contextlib.contextmanager
def told_when_full(folder: Path) -> Iterator[None]:
    """Turns what a library says of a full disk into the sentence that names the disk. Raises HomeError instead of it."""
    try:
        yield
    except GanRuntimeError:
        raise
    except Exception as error:
        if is_full(error):
            raise HomeError.not_written(folder, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))) from error
        raise
