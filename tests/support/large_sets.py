"""Digits as a prepared data set that is too large for memory, so trainers stream its rows; it is
small on disk.
"""

from __future__ import annotations

import numpy as np

from gan_runtime.base.fields import IMAGES
from gan_runtime.data import loading, prepared
from gan_runtime.data.prepared import FieldRecord, Manifest
from gan_runtime.data.sharded import row_bytes, shard_file
from gan_runtime.records.home import Home
from gan_runtime.records.record import now

NAME = "many-digits"


def prepare(home: Home) -> str:
    """Prepares the data set; returns its name.

    The training rows are those of `digits`, in two files. The held-out rows are a hole in the
    second file, all zero.
    """
    digits = loading.load("digits")
    assert digits.resident is not None
    field, images = digits.fields[IMAGES], digits.resident[IMAGES]
    empty = prepared.RESIDENT_BYTES // row_bytes(field) + 1
    first = digits.rows // 2
    shards = (first, digits.rows - first + empty)
    folder = prepared.folder(home, NAME)
    folder.mkdir(parents=True)
    for number, part in enumerate((images[:first], images[first:])):
        # The file system allocates no space for unwritten data.
        file = np.lib.format.open_memmap(
            shard_file(folder, IMAGES, number), "w+", field.dtype, (shards[number], *field.shape)
        )
        file[: len(part)] = part
        file.flush()
    manifest = Manifest(
        name=NAME,
        preparation="pictures",
        source="digits",
        options={},
        content="0123456789abcdef",
        fields={IMAGES: FieldRecord.of(field)},
        shards={IMAGES: shards},
        held_out=empty,
        prepared_at=now(),
    )
    prepared.write_manifest(folder, manifest)
    assert prepared.is_streamed(home, NAME)
    return NAME
