"""Files of showers become a data set: all are checked by their headers first, then converted part by part, in the order of their names.

What tells two kinds of files apart is a `Kind`; the last rows are held out, as the authors hold out their last files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import h5py

from gan_runtime.data import hdf5_files
from gan_runtime.data.contract import Arrays, Progress
from gan_runtime.data.hdf5_files import opened
from gan_runtime.data.picture_files import readable
from gan_runtime.data.prepared import Stored
from gan_runtime.data.sharded import RowWriter
from gan_runtime.data.summary import Summary
from gan_runtime.errors import DatasetError
from gan_runtime.fields import Fields

Columns = dict[str, h5py.Dataset]


@dataclass(frozen=True)
class Kind:
    """How files of one kind are read.

    `columns(file)`: what is needed of a file, checked; `fields(columns)`: of the rows that become of it; `rows(file, columns, begin,
    end)`: some of them, those that are left out missing. Each raises DatasetError with the name of the file. `at_once`: rows.
    `left_out`: why, the end of a sentence.
    """

    columns: Callable[[h5py.File], Columns]
    fields: Callable[[Columns], Fields]
    rows: Callable[[h5py.File, Columns, int, int], Arrays]
    at_once: int
    left_out: str = ""


def convert(source: Path, kind: Kind, held_out_percent: float, folder: Path, progress: Progress) -> Stored:
    """Writes the rows of all files into the existing, empty `folder`.

    Raises:
        DatasetError: a file is damaged, of another kind, or of another shape than the first; no row is left.
        HomeError: the disk has too little space.
    """
    found = hdf5_files.source_of(source)
    fields, total = _looked_at(found.files, kind)
    kept = done = 0
    with RowWriter(folder, fields, total, f"a data set of {total:,} showers") as writer:
        for path in found.files:
            for read, rows in _parts(path, kind):
                writer.append(rows)
                kept, done = kept + len(next(iter(rows.values()))), done + read
                progress(done, total, f"Converting {done:,} of {total:,} showers")
    if not kept:
        raise DatasetError(f"none of the {total:,} showers can be used: each {kind.left_out}.")
    held_out = min(int(kept * held_out_percent / 100), kept - 1)
    summary = Summary(held_out=held_out, skipped=found.skipped, note=_note(total, kept, kind))
    return Stored(fields, writer.shards, summary)


def _looked_at(files: list[Path], kind: Kind) -> tuple[Fields, int]:
    """The fields of the rows, and how many rows there are before any is left out."""
    known: Fields | None = None
    total = 0
    for path in files:
        with opened(path) as file:
            columns = kind.columns(file)
            fields = kind.fields(columns)
            if known is not None and fields != known:
                raise DatasetError(
                    f"{hdf5_files.name_of(file)} holds other showers than {readable(files[0].name)}: prepare them one by one."
                )
            known, total = fields, total + hdf5_files.same_rows(file, columns)
    return known or {}, total


def _parts(path: Path, kind: Kind) -> Iterator[tuple[int, Arrays]]:
    """Of one file: how many rows were read, and those that are kept."""
    with opened(path) as file:
        columns = kind.columns(file)
        rows = hdf5_files.same_rows(file, columns)
        for begin, end in hdf5_files.parts(columns, rows, kind.at_once):
            yield end - begin, kind.rows(file, columns, begin, end)


def _note(total: int, kept: int, kind: Kind) -> str:
    left = total - kept
    return f"{left:,} of {total:,} showers are left out: each {kind.left_out}" if left else ""
