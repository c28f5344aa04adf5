"""A prepared data set for a conditional `dcgan`: random RGB images, 64 × 64 pixels, 10 classes.

It is small, so a run loads it into memory. Within `streaming` a process reads prepared sets of any
size from memory-mapped files while the device computes, as it does for sets larger than memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.fields import IMAGES, LABELS, Field, Fields, labels, pictures
from gan_runtime.data import prepared
from gan_runtime.data.prepared import FieldRecord, Manifest
from gan_runtime.data.sharded import FieldWriter, shard_file
from gan_runtime.records.home import Home

NAME = "random-pictures"
PIXELS, CHANNELS, CLASSES = 64, 3, 10
SHARD_BYTES = 32_000_000  # several files, as in a set larger than memory
CHUNK_ROWS = 1_024
BYTE_VALUES = 256


def write(home: Home, rows: int) -> None:
    """Writes the set into the home."""
    fields = {
        IMAGES: pictures(PIXELS, PIXELS, CHANNELS),
        LABELS: labels(tuple(f"class {number}" for number in range(CLASSES))),
    }
    write_random(home, NAME, fields, rows)


def write_random(home: Home, set_name: str, fields: Fields, rows: int) -> None:
    """Writes a set of random rows in these fields, and evicts it from the page cache."""
    folder = prepared.folder(home, set_name)
    folder.mkdir(parents=True)
    shards = {name: _write_field(folder, name, field, rows) for name, field in fields.items()}
    manifest = Manifest(
        name=set_name,
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
    """This process streams the prepared sets that it opens, however small; its children do not."""
    with mock.patch.object(prepared, "open_set", partial(prepared.open_set, resident_bytes=0)):
        yield


def _write_field(folder: Path, name: str, field: Field, rows: int) -> tuple[int, ...]:
    """Writes one field; returns the number of rows in each file."""
    random = np.random.default_rng(1)
    with FieldWriter(folder, name, field, SHARD_BYTES) as writer:
        for begin in range(0, rows, CHUNK_ROWS):
            writer.append(_random(random, field, min(CHUNK_ROWS, rows - begin)))
    for number in range(len(writer.shards)):
        _evict_from_cache(shard_file(folder, name, number))
    return tuple(writer.shards)


def _random(random: np.random.Generator, field: Field, rows: int) -> NDArray[Any]:
    """Bytes, classes, or floats in [-1, 1)."""
    dtype = np.dtype(field.dtype)
    if dtype.kind == "f":
        return random.uniform(-1.0, 1.0, (rows, *field.shape)).astype(dtype)
    return random.integers(0, len(field.classes) or BYTE_VALUES, (rows, *field.shape), dtype)


def _evict_from_cache(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())  # dirty pages would stay in the cache
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
