"""Showers for benchmarks: a file in the format of 3DGAN's authors, and the set prepared from it.

Within `converted_once` a process streams the set's rows from memory-mapped files. Within
`converted_per_epoch` it reads the file in order and converts each batch, as the authors convert
each file in each epoch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from unittest import mock

import h5py
import numpy as np

from gan_runtime.data import hdf5_files, preparations, prepared
from gan_runtime.data.contract import Array, DataSet, Indices
from gan_runtime.data.preparations import PreparationRequest
from gan_runtime.domains.showers import file_formats
from gan_runtime.domains.showers.entry import AUTHORS_GRID, CELL_UNITS
from gan_runtime.domains.showers.file_checks import CheckedShowers
from gan_runtime.domains.showers.preparation_options import AuthorsOptions
from gan_runtime.domains.showers.simulation import simulate
from gan_runtime.records.home import Home

NAME = "showers"
FILE = "showers.h5"
CHUNK = 32


def write(home: Home, showers: int, grid: str) -> None:
    """Writes the file into the home and prepares the set. Both stay in the page cache."""
    source = home.prepare().path / FILE
    write_file(source, showers)
    options = {"grid": grid, "held_out_percent": 0}
    preparations.prepare(
        home, PreparationRequest("showers_hdf5", NAME, source, options), lambda *_: None
    )


def write_file(path: Path, showers: int) -> None:
    """Writes ECAL in GeV · 50 and energy in GeV. Without angles, they are measured at reading."""
    random = np.random.default_rng(0)
    energies = random.uniform(100.0, 200.0, showers)
    with h5py.File(path, "w") as file:
        cells = file.create_dataset(file_formats.CELLS, (showers, *AUTHORS_GRID), "f4")
        file[file_formats.ENERGY] = energies
        for begin in range(0, showers, CHUNK):
            part = energies[begin : begin + CHUNK]
            angles = np.radians(random.uniform(60.0, 120.0, len(part)))
            cells[begin : begin + len(part)] = CELL_UNITS * simulate(part, angles, random)


@dataclass
class ConversionPerEpoch:
    """A `contract.DataSet` that returns rows in the order of the file, whatever the indices."""

    prepared_set: DataSet
    file: h5py.File
    options: AuthorsOptions
    begin: int = field(default=0, init=False)
    resident: None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.name, self.origin = self.prepared_set.name, self.prepared_set.origin
        self.note = self.prepared_set.note
        self.fields, self.rows, self.held_out = (
            self.prepared_set.fields,
            self.prepared_set.rows,
            self.prepared_set.held_out,
        )
        self._columns = file_formats.authors_columns(self.file)

    def read(self, indices: Indices) -> dict[str, Array]:
        """The next rows of the file, as many as `indices`."""
        if self.begin + len(indices) > self.rows:
            self.begin = 0
        begin, self.begin = self.begin, self.begin + len(indices)
        cells, energies = (
            hdf5_files.read(self.file, self._columns[key], begin, self.begin)
            for key in (file_formats.CELLS, file_formats.ENERGY)
        )
        cells[cells < self.options.threshold] = 0.0
        is_shower = cells.sum(axis=(1, 2, 3)) > file_formats.LEAST_SUM
        showers = CheckedShowers(
            is_shower, cells[is_shower] / np.float32(CELL_UNITS), energies[is_shower]
        )
        return dict(file_formats.authors_rows(self.options.grid, showers, {}, self.file.filename))

    def read_held_out(self, count: int, first: int = 0) -> dict[str, Array]:
        """Held-out rows of the prepared set."""
        return self.prepared_set.read_held_out(count, first)


@contextmanager
def converted_once() -> Iterator[None]:
    """Streams prepared sets in this process, not in its children."""
    with mock.patch.object(prepared, "open_set", partial(prepared.open_set, resident_bytes=0)):
        yield


@contextmanager
def converted_per_epoch() -> Iterator[None]:
    """Opens prepared sets as `ConversionPerEpoch`."""
    open_set = prepared.open_set

    def open_file(home: Home, name: str) -> ConversionPerEpoch:
        grid = prepared.manifest(home, name).options["grid"]
        return ConversionPerEpoch(
            open_set(home, name, resident_bytes=0),
            stack.enter_context(hdf5_files.open_file(home.path / FILE)),
            AuthorsOptions(grid=grid),
        )

    with ExitStack() as stack, mock.patch.object(prepared, "open_set", open_file):
        yield
