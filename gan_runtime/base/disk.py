"""Free space, looked at before something is written that would not fit, and while a run
trains; and the space that folders take.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from gan_runtime.base.errors import GanRuntimeError, HomeError

# What journals and results.duckdb need to go on: below it a run would be queued that nobody can
# start or follow.
LEAST_BYTES = 20_000_000
# Below it pages and runs warn: a twentieth of the disk, within these bounds.
LOW_BYTES = (100_000_000, 5_000_000_000)
_FULL = (errno.ENOSPC, errno.EDQUOT)


def free_bytes(folder: Path) -> int:
    """What is left on the disk of the existing `folder`. Whoever asks for free space asks here."""
    return shutil.disk_usage(folder).free


def low_bytes(folder: Path) -> int:
    """Below how many free bytes the disk of `folder` is worth a warning."""
    least, most = LOW_BYTES
    return min(max(shutil.disk_usage(folder).total // 20, least), most)


def is_other(folder: Path, than: Path) -> bool:
    """Whether two folders lie on different disks; not where one of them is missing."""
    with contextlib.suppress(OSError):
        return folder.stat().st_dev != than.stat().st_dev
    return False


def used_bytes(folder: Path) -> int:
    """The bytes of all files in a folder and below it; links are not followed, and what
    vanishes meanwhile has none.
    """
    total, waiting = 0, [folder]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(Path(entry.path))
                    else:
                        total += entry.stat(follow_symlinks=False).st_size
    return total


def require(folder: Path, size: int, purpose: str) -> None:
    """Raises HomeError when fewer than `size` bytes are free on the disk of the existing
    `folder`.
    """
    free = free_bytes(folder)
    if free < size:
        raise HomeError(
            f"the disk of {folder} has {free / 1e6:,.0f} MB left, but {purpose} needs"
            f" {size / 1e6:,.0f} MB: make space on it."
        )


def is_full(error: BaseException) -> bool:
    """Whether the system refused to write for want of space.

    Other libraries tell it in their text only.
    """
    if isinstance(error, OSError):
        return error.errno in _FULL
    return any(
        f"(os error {number})" in str(error) or os.strerror(number) in str(error)
        for number in _FULL
    )


@contextlib.contextmanager
def whole_file(path: Path, durable: bool = False, aside: Path | None = None) -> Iterator[Path]:
    """A path beside `path` to write to; it takes the place of `path` at the end, or is removed when
    the writing fails.

    `durable`: contents first and then the name are on the disk at the end, so that a power loss
    leaves the old file or the new one.
    `aside`: that path; by default it ends in .part, and what a kill leaves of it in a home is
    removed by the owner.
    """
    aside = aside or path.with_suffix(".part")
    try:
        yield aside
        if durable:
            _fsync(aside)
        aside.replace(path)
    except BaseException:
        with contextlib.suppress(
            OSError
        ):  # a disk that takes no writing refuses the removal as well
            aside.unlink(missing_ok=True)
        raise
    if durable:
        _fsync(path.parent)


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def told_when_full(folder: Path) -> Iterator[None]:
    """Turns what a library says of a full disk into the sentence that names the disk.

    Raises HomeError instead of it.
    """
    try:
        yield
    except GanRuntimeError:
        raise
    except Exception as error:
        if is_full(error):
            raise HomeError.not_written(
                folder, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            ) from error
        raise
