"""The locks of devices: one file each, locked while a process has it open, in one folder for all
homes and users.

A file next to each lock names its holder. Only its user can read it; others see the user and the
time.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import stat
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gan_runtime.base.errors import WITHOUT_LOCKS, DeviceLockError
from gan_runtime.records.record import UtcTime

# ---- the folder ----------------------------------------------------------------------------------


FOLDER_VARIABLE = "GAN_RUNTIME_LOCKS"
FOLDER_NAME = "gan-runtime-devices"
SHARED_MODE = 0o1777  # as /tmp: only the owner of a file can remove it
# Not $TMPDIR, which can differ between two processes of a host. Only a restart empties /run/lock.
SHARED = Path("/run/lock")
ELSEWHERE = Path("/tmp")


def folder() -> Path:
    """The folder of the locks, created if it is missing.

    Raises:
        DeviceLockError: it cannot be created, or is not open to all users.
    """
    setting = os.environ.get(FOLDER_VARIABLE)
    path = Path(setting).expanduser() if setting else default_folder()
    try:
        if setting:
            path.mkdir(parents=True, exist_ok=True)
        else:
            _create_shared(path)
        status = path.lstat()
    except OSError as error:
        raise _folder_unusable(path, error.strerror or type(error).__name__) from None
    is_shared = stat.S_IMODE(status.st_mode) == SHARED_MODE
    if not setting and not (
        stat.S_ISDIR(status.st_mode) and (is_shared or status.st_uid == os.geteuid())
    ):
        raise _folder_unusable(path, "it is not open to all users")
    return path


def default_folder() -> Path:
    """The folder of the locks, the same for every process of the host."""
    return (SHARED if _is_shared(SHARED) else ELSEWHERE) / FOLDER_NAME


def _is_shared(path: Path) -> bool:
    with contextlib.suppress(OSError):
        return stat.S_IMODE(path.stat().st_mode) == SHARED_MODE
    return False


def _create_shared(path: Path) -> None:
    with contextlib.suppress(FileExistsError):
        path.mkdir()
        path.chmod(SHARED_MODE)  # regardless of the umask


def _folder_unusable(path: Path, why: str) -> DeviceLockError:
    return DeviceLockError(
        f"the locks of this host's devices cannot be stored in {path} ({why}): check that folder,"
        f" or set {FOLDER_VARIABLE} to another one, the same for all dashboards of this host."
    )


# ---- one lock ------------------------------------------------------------------------------------


SUFFIX = ".lock"
# A lock file stays empty, so it is opened for reading. No link is followed, and no pipe blocks.
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_READABLE_BY_ALL = 0o444
_CHECKED = ".checked"  # the file of no device


def take(key: str, shared: bool = False) -> int | None:
    """Takes a lock; returns the descriptor of its open file, or None if another process holds it.
    Programs that this process starts do not inherit it.

    `shared`: together with other shared holders.

    Raises:
        DeviceLockError: the lock cannot be created or opened.
    """
    return _locked(folder() / f"{key}{SUFFIX}", fcntl.LOCK_SH if shared else fcntl.LOCK_EX)


def is_taken(key: str) -> bool:
    """Whether a process holds it exclusively. Shares it for a moment, when a `take` fails."""
    path = folder() / f"{key}{SUFFIX}"
    if not path.exists():
        return False
    number = _locked(path, fcntl.LOCK_SH)
    if number is None:
        return True
    os.close(number)
    return False


def check() -> None:
    """Raises DeviceLockError if no device can be locked on this host."""
    number = _locked(folder() / _CHECKED, fcntl.LOCK_SH)
    if number is not None:
        os.close(number)


def is_in_place(number: int, key: str) -> bool:
    """Whether the open file of a lock is still the file in the folder. Raises DeviceLockError,
    OSError.
    """
    return _is_same_file(number, folder() / f"{key}{SUFFIX}")


def touch_lock(number: int) -> None:
    """Touches the file of a held lock. Raises OSError."""
    try:
        os.utime(number)
    except PermissionError:  # a file of another user; reading it updates its access time
        os.pread(number, 1, 0)


def _locked(path: Path, how: int) -> int | None:
    while True:
        number = _opened(path)
        try:
            fcntl.flock(number, how | fcntl.LOCK_NB)
            if _is_same_file(number, path):
                return number
        except BlockingIOError:
            os.close(number)
            return None
        except OSError as error:
            os.close(number)
            raise _lock_unusable(path, error) from None
        os.close(number)  # the file was just removed, so its lock excludes no process


def _opened(path: Path) -> int:
    try:
        try:
            return os.open(path, _FLAGS)
        except FileNotFoundError:
            number = os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL, _READABLE_BY_ALL)
            os.fchmod(number, _READABLE_BY_ALL)  # regardless of the umask
            return number
    except FileExistsError:
        return _opened(path)
    except OSError as error:
        raise _lock_unusable(path, error) from None


def _is_same_file(number: int, path: Path) -> bool:
    try:
        return os.fstat(number).st_ino == path.stat().st_ino
    except FileNotFoundError:
        return False


def _lock_unusable(path: Path, error: OSError) -> DeviceLockError:
    if error.errno in WITHOUT_LOCKS:
        return _folder_unusable(path.parent, f"{error.strerror}: its file system has no locks")
    return DeviceLockError(
        f"the lock {path} of a device cannot be used ({error.strerror}): remove it, or ask its"
        " owner."
    )


# ---- the holder of a device ----------------------------------------------------------------------


HOLDER_BYTES = 10_000  # most bytes of a holder's file


class Holder(BaseModel):
    """A training; only its user where the rest is not readable; empty where no file names it.

    `home`: its folder. `pid`: of the trainer, once it has started.
    """

    model_config = ConfigDict(frozen=True)
    home: str = Field(default="", max_length=4_096)
    run_id: str = Field(default="", max_length=200)
    name: str = Field(default="", max_length=200)
    attempt: int = 1
    pid: int | None = None
    since: UtcTime | None = None
    user: str = Field(default="", max_length=200)

    @property
    def is_known(self) -> bool:
        """Whether it names the run."""
        return bool(self.run_id)


def write_holder(key: str, holder: Holder) -> None:
    """Writes the holder of a device; the lock holds even where that fails."""
    locks_folder = folder()
    with contextlib.suppress(OSError):
        # An unpredictable name, since all users can write into this folder.
        number, partial = tempfile.mkstemp(dir=locks_folder, prefix=".")
        try:
            with os.fdopen(number, "w", encoding="utf-8") as file:
                file.write(holder.model_dump_json())
            Path(partial).replace(locks_folder / f"{key}.{os.geteuid()}.json")
        except OSError:
            Path(partial).unlink(missing_ok=True)


def touch_holder(key: str) -> None:
    """Touches the file of this user that names the holder."""
    with contextlib.suppress(OSError):
        os.utime(folder() / f"{key}.{os.geteuid()}.json", follow_symlinks=False)


def read_holder(key: str) -> Holder | None:
    """The last holder of the device; None if no file names one. Only the lock shows whether the
    device is still in use.
    """
    newest: tuple[float, Path, int] | None = None
    for path in folder().glob(f"{key}.*.json"):
        with contextlib.suppress(OSError, ValueError):
            status, user = path.lstat(), int(path.name.split(".")[-2])
            if status.st_uid == user and (newest is None or status.st_mtime > newest[0]):
                newest = (status.st_mtime, path, user)
    if newest is None:
        return None
    changed, path, user = newest
    holder = _own_holder(path) if user == os.geteuid() else None
    return (holder or Holder(since=datetime.fromtimestamp(changed, UTC))).model_copy(
        update={"user": _user_name(user)}
    )


def _own_holder(path: Path) -> Holder | None:
    try:
        with path.open("rb") as file:
            return Holder.model_validate_json(file.read(HOLDER_BYTES))
    except (OSError, ValidationError):
        return None


def _user_name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"number {user}"
