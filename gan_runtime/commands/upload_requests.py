"""What comes out of a browser: room for a file that arrives, and a source of pictures made of several. Part of `commands`."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from gan_runtime.base import disk
from gan_runtime.base.errors import HomeError
from gan_runtime.jobs import uploads
from gan_runtime.jobs.uploads import Dropped
from gan_runtime.records.actors import Asker, for_operators
from gan_runtime.records.home import Home

log = logging.getLogger("gan_runtime")


@for_operators
def receive_upload(home: Home, file_id: str, size: int, *, asker: Asker) -> Path:
    """Makes room for a file of about `size` bytes; returns where its content is to be written.

    Raises:
        HomeError: the home cannot be written, or its disk has too little space.
        ValueError: that is no id of a file.
    """
    uploads.forget_old(home.prepare())
    disk.require(home.path, size + disk.LEAST_BYTES, "this file")
    path = uploads.place(home, file_id)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HomeError.not_written(path, error) from None
    log.info("a file of %d bytes arrives from the %s", size, asker.name)
    return path


@for_operators
def keep_upload(home: Home, file_id: str, content: bytes, *, asker: Asker) -> None:
    """Writes a file that is at hand as a whole. Raises as `receive_upload`, and HomeError when the disk takes no more."""
    uploads.keep(home, file_id, content)
    log.info("a file of %d bytes came from the %s", len(content), asker.name)


@for_operators
def use_uploads(home: Home, files: Sequence[Dropped], *, asker: Asker) -> Path:
    """The one zip or HDF5 file, or a folder with all files: what a data set can be prepared from. Raises as `uploads.as_source`."""
    source = uploads.as_source(home, files)
    log.info("%d files of the %s are ready to be prepared", len(files), asker.name)
    return source


@for_operators
def forget_upload(home: Home, file_id: str, *, asker: Asker) -> None:
    """Removes a file, if it is there."""
    uploads.forget(home, file_id)
    log.info("a file was removed, as the %s asked", asker.name)
