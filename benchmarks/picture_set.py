"""A prepared data set for a conditional `dcgan`: random RGB pictures of 64 × 64 pixels in 10 classes.

It is small, so a run holds it in memory. Within `streaming` a process reads prepared sets of any size as it
reads those that are too large for that: from memory-mapped files, while the device works.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np

from gan_runtime.data import prepared
from gan_runtime.data.prepared import FieldRecord, Manifest
from gan_runtime.data.sharded import FieldWriter, shard_file
from gan_runtime.fields import IMAGES, LABELS, Field, labels, pictures
from gan_runtime.home import Home

NAME = "random-pictures"
PIXELS, CHANNELS, CLASSES = 64, 3, 10
SHARD_BYTES = 32_000_000  # several files, as a set that is larger than memory has
ROWS_AT_ONCE = 1_024
BYTE_VALUES = 256


def write(home: Home, rows: int) -> None:
    """Prepares the set in the home. The system's cache then holds none of it: rows come from the disk."""
    folder = prepared.folder(home, NAME)
    folder.mkdir(parents=True)
    fields = {
        IMAGES: pictures(PIXELS, PIXELS, CHANNELS),
        LABELS: labels(tuple(f"class {number}" for number in range(CLASSES))),
    }
    shards = {name: _written(folder, name, field, rows) for name, field in fields.items()}
    manifest = Manifest(
        name=NAME,
        preparation="pictures",
        source="random numbers",
        options={},
        content="",
        fields={name: FieldRecord.of(field) for name, field in fields.items()},
        shards=shards,
        held_out=0,
        prepared_at=datetime.now(UTC),
    )
    prepared.write_manifest(folder, manifest)


@contextmanager
def streaming() -> Iterator[None]:
    """This process streams prepared sets that it opens, however small; processes that it starts do not."""
    with mock.patch.object(prepared, "opened", partial(prepared.opened, resident_bytes=0)):
        yield


def _written(folder: Path, name: str, field: Field, rows: int) -> tuple[int, ...]:
    """Rows in each file of one field: random bytes, or random classes."""
    random, values = np.random.default_rng(1), len(field.classes) or BYTE_VALUES
    with FieldWriter(folder, name, field, SHARD_BYTES) as writer:
        for begin in range(0, rows, ROWS_AT_ONCE):
            count = min(ROWS_AT_ONCE, rows - begin)
            writer.append(random.integers(0, values, (count, *field.shape), np.dtype(field.dtype)))
    for number in range(len(writer.shards)):
        _leave_to_the_disk(shard_file(folder, name, number))
    return tuple(writer.shards)


def _leave_to_the_disk(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())  # pages that are not on the disk yet stay in the cache
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
