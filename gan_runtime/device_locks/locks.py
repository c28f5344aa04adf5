"""The locks of devices: one file each, locked as long as a process holds it open, in one folder for
all homes and users.

A file next to each lock names its holder. Only its own user can read it; others see the user and
the time.
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

from gan_runtime.base.errors import DeviceLockError
from gan_runtime.records.record import UtcTime

# ---- the folder ----------------------------------------------------------------------------------


FOLDER_VARIABLE = "GAN_RUNTIME_LOCKS"
FOLDER_NAME = "gan-runtime-devices"
FOR_EVERYBODY = 0o1777  # as /tmp: whoever made a file may remove it, and nobody else
# Not $TMPDIR: two processes of one host may have two of it. /run/lock is emptied by a restart and
# by nothing else.
SHARED = Path("/run/lock")
ELSEWHERE = Path("/tmp")


def folder() -> Path:
    """Made if it is missing.

    Raises:
        DeviceLockError: it cannot be made, or is none that everybody may use.
    """
    chosen = os.environ.get(FOLDER_VARIABLE)
    path = Path(chosen).expanduser() if chosen else default_folder()
    try:
        if chosen:
            path.mkdir(parents=True, exist_ok=True)
        else:
            _make_for_everybody(path)
        status = path.lstat()
    except OSError as error:
        raise _folder_unusable(path, error.strerror or type(error).__name__) from None
    is_shared = stat.S_IMODE(status.st_mode) == FOR_EVERYBODY
    if not chosen and not (
        stat.S_ISDIR(status.st_mode) and (is_shared or status.st_uid == os.geteuid())
    ):
        raise _folder_unusable(path, "it is no folder that everybody may use")
    return path


def default_folder() -> Path:
    """The same for every process of the host."""
    return (SHARED if _is_for_everybody(SHARED) else ELSEWHERE) / FOLDER_NAME


def _is_for_everybody(path: Path) -> bool:
    with contextlib.suppress(OSError):
        return stat.S_IMODE(path.stat().st_mode) == FOR_EVERYBODY
    return False


def _make_for_everybody(path: Path) -> None:
    with contextlib.suppress(FileExistsError):
        path.mkdir()
        path.chmod(FOR_EVERYBODY)  # whatever the mask of this process


def _folder_unusable(path: Path, why: str) -> DeviceLockError:
    return DeviceLockError(
        f"the locks of this host's devices cannot be kept in {path} ({why}): check that folder, or"
        f" choose another one with {FOLDER_VARIABLE}, the same for all dashboards of this host."
    )


# ---- one lock ------------------------------------------------------------------------------------


SUFFIX = ".lock"
# Never written, so it is opened for reading; a link is not followed, a pipe does not block.
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_READABLE_BY_ALL = 0o444


def take(key: str, shared: bool = False) -> int | None:
    """The number of the open file that holds the lock; None: somebody else has it.

    Closed when the process starts a program.

    `shared`: together with others who share it, and with nobody who has it alone.

    Raises:
        DeviceLockError: the lock cannot be made or opened.
    """
    return _locked(folder() / f"{key}{SUFFIX}", fcntl.LOCK_SH if shared else fcntl.LOCK_EX)


def is_taken(key: str) -> bool:
    """Whether somebody has it alone right now.

    Shares it for a moment, so a `take` at that moment fails.
    """
    path = folder() / f"{key}{SUFFIX}"
    if not path.exists():
        return False
    number = _locked(path, fcntl.LOCK_SH)
    if number is None:
        return True
    os.close(number)
    return False


def is_in_place(number: int, key: str) -> bool:
    """Whether an open file of a lock is the one that others find.

    Raises DeviceLockError, OSError.
    """
    return _still_there(number, folder() / f"{key}{SUFFIX}")


def freshen_lock(number: int) -> None:
    """Touches the file of a held lock. Raises OSError."""
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
            raise _lock_unusable(path, error) from None
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
        raise _lock_unusable(path, error) from None


def _still_there(number: int, path: Path) -> bool:
    try:
        return os.fstat(number).st_ino == path.stat().st_ino
    except FileNotFoundError:
        return False


def _lock_unusable(path: Path, error: OSError) -> DeviceLockError:
    return DeviceLockError(
        f"the lock {path} of a device cannot be used ({error.strerror}): remove it, or ask whose"
        " it is."
    )


# ---- who holds a device --------------------------------------------------------------------------


LONGEST_HOLDER = 10_000  # bytes of such a file


class Holder(BaseModel):
    """A training; only its user where the rest may not be read; empty where no file names it.

    `home`: its folder; `pid`: of the trainer, once it is there.
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
        """Whether it says which run it is."""
        return bool(self.run_id)


def write_holder(key: str, holder: Holder) -> None:
    """Names the holder of a device. Where that cannot be written, the lock holds in any case."""
    place = folder()
    with contextlib.suppress(OSError):
        # Of a name that nobody can know beforehand: anybody may put files into this folder.
        number, aside = tempfile.mkstemp(dir=place, prefix=".")
        try:
            with os.fdopen(number, "w", encoding="utf-8") as file:
                file.write(holder.model_dump_json())
            Path(aside).replace(place / f"{key}.{os.geteuid()}.json")
        except OSError:
            Path(aside).unlink(missing_ok=True)


def freshen_holder(key: str) -> None:
    """Touches the file of this user that names the holder."""
    with contextlib.suppress(OSError):
        os.utime(folder() / f"{key}.{os.geteuid()}.json", follow_symlinks=False)


def read_holder(key: str) -> Holder | None:
    """Who took the device last; None where no file names one.

    Only the lock says whether it is still taken.
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
            return Holder.model_validate_json(file.read(LONGEST_HOLDER))
    except (OSError, ValidationError):
        return None


def _user_name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"number {user}"
