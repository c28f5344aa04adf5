"""Files that are written whole or not at all, and the space on their disks."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from gan_runtime.base import formats
from gan_runtime.base.errors import GanRuntimeError, HomeError, TargetError

# Needed by journals and results.duckdb. With less, a run could be queued and never start.
LEAST_BYTES = 20_000_000
# Pages and runs warn below a twentieth of the disk, within these bounds.
LOW_BYTES = (100_000_000, 5_000_000_000)
_FULL = (errno.ENOSPC, errno.EDQUOT)


def free_bytes(folder: Path) -> int:
    """Free space on the disk of the existing `folder`. All code asks here, so that tests can patch
    it.
    """
    return shutil.disk_usage(folder).free


def low_bytes(folder: Path) -> int:
    """The free space below which pages and runs warn about the disk of `folder`."""
    least, most = LOW_BYTES
    return min(max(shutil.disk_usage(folder).total // 20, least), most)


def is_other(folder: Path, than: Path) -> bool:
    """Whether two folders are on different disks; False if a folder is missing."""
    with contextlib.suppress(OSError):
        return folder.stat().st_dev != than.stat().st_dev
    return False


def used_bytes(folder: Path) -> int:
    """The bytes of all files in a folder and its sub-folders. Does not follow links, and ignores
    files that disappear.
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
            f"the disk of {folder} has {formats.size(free)} left, but {purpose} needs"
            f" {formats.size(size)}: free space on it."
        )


def is_full(error: BaseException) -> bool:
    """Whether a write failed for want of space. Some libraries say so in their message only."""
    if isinstance(error, OSError):
        return error.errno in _FULL
    return any(
        f"(os error {number})" in str(error) or os.strerror(number) in str(error)
        for number in _FULL
    )


@contextlib.contextmanager
def whole_file(path: Path, durable: bool = False, partial: Path | None = None) -> Iterator[Path]:
    """Yields a temporary path, which is renamed to `path` at the end, or removed if writing fails.

    `durable`: syncs the contents, then the name, so that a power loss leaves the old or the new
    file. `partial`: the temporary path; by default `path` with the suffix .part, which the owner of
    a home removes after a crash.
    """
    partial = partial or path.with_suffix(".part")
    try:
        yield partial
        if durable:
            _fsync(partial)
        partial.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):  # a read-only disk refuses the removal as well
            partial.unlink(missing_ok=True)
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
def full_disk_as_home_error(folder: Path) -> Iterator[None]:
    """Turns any error that a library raises on a full disk into HomeError, which names the disk."""
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


_FILE_TYPES = {
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def check_targets(paths: Iterable[Path], overwrite: bool) -> None:
    """Checks that files at paths chosen by the user can be written.

    Raises:
        TargetError: a path is a folder, link, pipe or device, or exists without `overwrite`.
        OSError: its folder cannot be read.
    """
    for path in paths:
        kind = _file_type(path)
        if kind not in (None, stat.S_IFREG):
            raise TargetError(
                f"{path} is {_FILE_TYPES.get(kind or 0, 'no file')}, not a regular file: choose"
                " another path."
            )
        if kind is not None and not overwrite:
            raise TargetError(f"{path} exists already: choose another path, or add --overwrite.")


@contextlib.contextmanager
def whole_target(path: Path, overwrite: bool) -> Iterator[Path]:
    """As `whole_file`, for a path chosen by the user. Raises as `check_targets`."""
    check_targets([path], overwrite)
    # The same suffix, since some writers choose the format by it.
    partial = path.with_name(f".{os.getpid()}.{path.name}")
    with whole_file(path, partial=partial):
        yield partial
        check_targets([path], overwrite)  # checked again, since writing can take minutes


def write_target(path: Path, content: bytes, overwrite: bool) -> None:
    """A whole file of the user's choice. Raises OSError, and as `check_targets`."""
    with whole_target(path, overwrite) as temporary:
        temporary.write_bytes(content)


def _file_type(path: Path) -> int | None:
    """The type of a file; None if the path does not exist."""
    try:
        return stat.S_IFMT(path.lstat().st_mode)
    except FileNotFoundError:
        return None
