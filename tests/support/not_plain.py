"""What may lie in the place of a file and is none: opening it would wait, or never end."""

from __future__ import annotations

import os
import stat
from pathlib import Path

KINDS = ("pipe", "socket", "folder", "device", "a link to a pipe")


def put(path: Path, kind: str) -> None:
    """Puts one there."""
    path.unlink(missing_ok=True)
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "socket":
            os.mknod(path, stat.S_IFSOCK | 0o600)
        case "folder":
            path.mkdir()
        case "device":
            path.symlink_to("/dev/zero")
        case _:
            os.mkfifo(path.with_name("a-pipe"))
            path.symlink_to("a-pipe")
