"""Who has a device, in words: a file beside its lock, readable by its own user alone. Others learn the user and the time."""

from __future__ import annotations

import contextlib
import os
import pwd
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gan_runtime.device_locks.folder import folder
from gan_runtime.records.columns import UtcTime

LONGEST = 10_000  # bytes of such a file


class Holder(BaseModel):
    """A training, or only its user where the rest may not be read, and nothing where nobody has said. `home`: its folder; `pid`: of the
    trainer, once it is there."""

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


def write(key: str, holder: Holder) -> None:
    """Says whose the device is. Where that cannot be written, the lock holds all the same."""
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


def freshen(key: str) -> None:
    """Makes what this user has said of it look new."""
    with contextlib.suppress(OSError):
        os.utime(folder() / f"{key}.{os.geteuid()}.json", follow_symlinks=False)


def read(key: str) -> Holder | None:
    """Who took the device last; None where nobody has said. Whether it is still taken, only the lock says."""
    newest: tuple[float, Path, int] | None = None
    for path in folder().glob(f"{key}.*.json"):
        with contextlib.suppress(OSError, ValueError):
            status, user = path.lstat(), int(path.name.split(".")[-2])
            if status.st_uid == user and (newest is None or status.st_mtime > newest[0]):
                newest = (status.st_mtime, path, user)
    if newest is None:
        return None
    changed, path, user = newest
    holder = _own(path) if user == os.geteuid() else None
    return (holder or Holder(since=datetime.fromtimestamp(changed, UTC))).model_copy(
        update={"user": _name(user)}
    )


def _own(path: Path) -> Holder | None:
    try:
        with path.open("rb") as file:
            return Holder.model_validate_json(file.read(LONGEST))
    except (OSError, ValidationError):
        return None


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"number {user}"
