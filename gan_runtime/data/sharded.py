"""Data sets on disk: plain NumPy files of rows for each field, `images-00000.npy`, …

Only requested rows are read, so a set can be larger than memory: small rows through a memory map,
large rows by their offset, since mapping pages for the first time takes longer than copying them.
The last `held_out` rows are held out.
"""

from __future__ import annotations

import io
import math
import os
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from gan_runtime.base import disk
from gan_runtime.base.errors import DatasetError
from gan_runtime.base.fields import Field, Fields
from gan_runtime.data.contract import Array, Arrays, ArraySet, Indices

# Size of one file: small enough to copy, large enough that few files are open.
SHARD_BYTES = 512_000_000

# Rows of at least this size are read by offset. Frames of 80 × 192 pixels, 61 and 92 kB, in batches
# of 16 on 2 cores take 1.7 ms of processor time, and 3.4 ms by mapping; mapped already, 0.6 and 0.3
# ms. The rows of a digit have 0.8 kB.
LARGE_ROW_BYTES = 16_384


def shard_file(folder: Path, field: str, number: int) -> Path:
    """The file of some rows of one field."""
    return folder / f"{field}-{number:05d}.npy"


@dataclass(frozen=True)
class ShardedSet:
    """A `DataSet` on disk. `shards`: the number of rows in each file of each field."""

    name: str
    folder: Path
    fields: Fields
    shards: dict[str, tuple[int, ...]]
    held_out: int
    origin: str
    note: str = ""

    @property
    def rows(self) -> int:
        """The number of rows to train on."""
        return min(map(sum, self.shards.values())) - self.held_out

    @property
    def resident(self) -> None:
        """None, since the rows are streamed."""
        return

    def read(self, indices: Indices) -> dict[str, Array]:
        """The rows to train on with these numbers."""
        return {name: column.rows(indices) for name, column in self._columns.items()}

    def read_held_out(self, count: int, first: int = 0) -> dict[str, Array]:
        """At most `count` held-out rows from `first` on."""
        begin, rows = (self.rows, self.held_out) if self.held_out else (0, self.rows)
        return self.read(begin + np.arange(first, min(first + count, rows)))

    def in_memory(self) -> ArraySet:
        """The same rows as arrays."""
        rows = {name: column.all_rows() for name, column in self._columns.items()}
        training = {name: array[: self.rows] for name, array in rows.items()}
        kept_back = (
            {name: array[self.rows :] for name, array in rows.items()} if self.held_out else {}
        )
        return ArraySet(self.name, self.fields, training, self.origin, self.note, kept_back)

    def check(self) -> None:
        """Raises DatasetError when a file is missing, incomplete, or differs from the manifest.

        Reads no rows.
        """
        for column in self._columns.values():
            column.maps  # noqa: B018  (opens them)

    @cached_property
    def _columns(self) -> dict[str, _Column]:
        return {
            name: _Column(self.folder, name, field, self.shards[name])
            for name, field in self.fields.items()
        }


@dataclass(frozen=True)
class _Column:
    """All files of one field."""

    folder: Path
    name: str
    field: Field
    shards: tuple[int, ...]

    def rows(self, indices: Indices) -> Array:
        """(len(indices), …): each row from the file that holds it."""
        rows = np.empty((len(indices), *self.field.shape), self.field.dtype)
        shard_of = np.searchsorted(self._ends, indices, side="right")
        within = indices - (self._ends - self.shards)[shard_of]
        if row_bytes(self.field) >= LARGE_ROW_BYTES and hasattr(os, "preadv"):
            targets = rows.reshape(len(rows), math.prod(self.field.shape)).view(np.uint8)
            for target, shard, number in zip(
                targets, shard_of.tolist(), within.tolist(), strict=True
            ):
                self._read_into(target.data, shard, number)
            return rows
        for shard in np.unique(shard_of):
            its = shard_of == shard
            rows[its] = self.maps[shard][within[its]]
        return rows

    def _read_into(self, target: memoryview, shard: int, number: int) -> None:
        begin = self.maps[shard].offset + number * target.nbytes
        if os.preadv(self._descriptors[shard], [target], begin) < target.nbytes:
            raise _unusable(
                shard_file(self.folder, self.name, shard), "it became shorter while it was read"
            )

    def all_rows(self) -> Array:
        """Everything, read from the disk once."""
        rows = np.empty((sum(self.shards), *self.field.shape), self.field.dtype)
        np.concatenate(self.maps, out=rows)
        return rows

    @cached_property
    def maps(self) -> list[np.memmap[Any, Any]]:
        """One memory map for each file."""
        return [self._map(number, rows) for number, rows in enumerate(self.shards)]

    @cached_property
    def _descriptors(self) -> list[int]:
        """The descriptors of the files that `maps` has checked; open as long as this
        object exists.
        """
        descriptors = []
        for number in range(len(self.maps)):
            path = shard_file(self.folder, self.name, number)
            try:
                descriptors.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
            except OSError as error:
                raise _unusable(path, error.strerror or str(error)) from None
            weakref.finalize(self, os.close, descriptors[-1])
        return descriptors

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        return np.cumsum(self.shards)

    def _map(self, number: int, rows: int) -> np.memmap[Any, Any]:
        path = shard_file(self.folder, self.name, number)
        expected = (rows, *self.field.shape)
        try:
            array: np.memmap[Any, Any] = np.load(path, mmap_mode="r")
        except (OSError, ValueError, EOFError) as error:
            raise _unusable(path, getattr(error, "strerror", None) or str(error)) from None
        if array.shape != expected or array.dtype != np.dtype(self.field.dtype):
            raise _unusable(
                path, f"it has {array.dtype} {array.shape}, not {self.field.dtype} {expected}"
            )
        return array


def _unusable(path: Path, reason: str) -> DatasetError:
    return DatasetError(
        f"{path} of a prepared data set cannot be used ({reason}): remove the data set and prepare"
        " it again."
    )


class FieldWriter:
    """Appends the rows of one field to files of about `shard_bytes`.

    Raises OSError when the disk is full.
    """

    def __init__(
        self, folder: Path, name: str, field: Field, shard_bytes: int = SHARD_BYTES
    ) -> None:
        self._folder, self._name, self._field = folder, name, field
        self._most_rows = max(1, shard_bytes // row_bytes(field))
        self._file: io.BufferedWriter | None = None
        self.shards: list[int] = []

    def __enter__(self) -> FieldWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def append(self, rows: Array | Sequence[Array]) -> None:
        """`rows`: (n, …) of the field's shape."""
        remaining = np.asarray(rows, self.field_dtype).reshape(-1, *self._field.shape)
        while len(remaining):
            if self._file is None or self.shards[-1] == self._most_rows:
                self._next_file()
            fit = remaining[: self._most_rows - self.shards[-1]]
            self._write(fit)
            remaining = remaining[len(fit) :]

    @property
    def field_dtype(self) -> np.dtype:
        """The stored type."""
        return np.dtype(self._field.dtype)

    def close(self) -> None:
        """Writes the number of rows into the header, where NumPy has reserved space."""
        if self._file is not None:
            self._file.seek(0)
            self._write_header(self.shards[-1])
            self._file.close()
            self._file = None

    def _write(self, rows: Array) -> None:
        if self._file is not None:
            self._file.write(rows.tobytes())
        self.shards[-1] += len(rows)

    def _next_file(self) -> None:
        self.close()
        self._file = shard_file(self._folder, self._name, len(self.shards)).open("xb")
        self.shards.append(0)
        self._write_header(0)

    def _write_header(self, rows: int) -> None:
        header = {
            "descr": npy.dtype_to_descr(self.field_dtype),
            "fortran_order": False,
            "shape": (rows, *self._field.shape),
        }
        npy.write_array_header_1_0(self._file, header)  # type: ignore[arg-type]


class RowWriter:
    """Writes whole rows, with a FieldWriter for each field. Raises HomeError when the disk has no
    space for `rows` of them.
    """

    def __init__(self, folder: Path, fields: Fields, rows: int, purpose: str) -> None:
        size = rows * sum(map(row_bytes, fields.values()))
        disk.require(folder, size + disk.LEAST_BYTES, purpose)
        self._writers = {name: FieldWriter(folder, name, field) for name, field in fields.items()}

    def __enter__(self) -> RowWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for writer in self._writers.values():
            writer.close()

    @property
    def shards(self) -> dict[str, tuple[int, ...]]:
        """Rows in each file of each field."""
        return {name: tuple(writer.shards) for name, writer in self._writers.items()}

    def append(self, rows: Arrays) -> None:
        """Appends rows; each field must have the same number of rows."""
        for name, writer in self._writers.items():
            writer.append(rows[name])


def row_bytes(field: Field) -> int:
    """Bytes of one row as stored."""
    return int(np.prod(field.shape, dtype=np.int64)) * np.dtype(field.dtype).itemsize
