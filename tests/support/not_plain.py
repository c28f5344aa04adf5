"""Entries in place of a file that are not regular files: opening one blocks or never ends."""

from __future__ import annotations

import os
import stat
from pathlib import Path

KINDS = ("pipe", "socket", "folder", "device", "a link to a pipe")


def put(path: Path, kind: str) -> None:
    """Creates an entry of this kind at the path."""
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
