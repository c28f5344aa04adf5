"""Where the locks of this host's devices lie: one folder for all homes and all users."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from gan_runtime.base.errors import DeviceLockError

FOLDER_VARIABLE = "GAN_RUNTIME_LOCKS"
NAME = "gan-runtime-devices"
FOR_EVERYBODY = 0o1777  # as /tmp: whoever made a file may remove it, and nobody else
# Not $TMPDIR: two processes of one host may have two of it. /run/lock is emptied by a restart and by nothing else.
SHARED = Path("/run/lock")
ELSEWHERE = Path("/tmp")


def folder() -> Path:
    """Made if it is missing.

    Raises:
        DeviceLockError: it cannot be made, or is none that everybody may use.
    """
    chosen = os.environ.get(FOLDER_VARIABLE)
    path = Path(chosen).expanduser() if chosen else default()
    try:
        if chosen:
            path.mkdir(parents=True, exist_ok=True)
        else:
            _make_for_everybody(path)
        status = path.lstat()
    except OSError as error:
        raise _unusable(path, error.strerror or type(error).__name__) from None
    is_shared = stat.S_IMODE(status.st_mode) == FOR_EVERYBODY
    if not chosen and not (stat.S_ISDIR(status.st_mode) and (is_shared or status.st_uid == os.geteuid())):
        raise _unusable(path, "it is no folder that everybody may use")
    return path


def default() -> Path:
    """The same for every process of the host."""
    return (SHARED if _is_for_everybody(SHARED) else ELSEWHERE) / NAME


def _is_for_everybody(path: Path) -> bool:
    with contextlib.suppress(OSError):
        return stat.S_IMODE(path.stat().st_mode) == FOR_EVERYBODY
    return False


def _make_for_everybody(path: Path) -> None:
    with contextlib.suppress(FileExistsError):
        path.mkdir()
        path.chmod(FOR_EVERYBODY)  # whatever the mask of this process


def _unusable(path: Path, why: str) -> DeviceLockError:
    return DeviceLockError(
        f"the locks of this host's devices cannot be kept in {path} ({why}): look after that folder, or name another one "
        f"with {FOLDER_VARIABLE}, the same for all dashboards of this host."
    )
