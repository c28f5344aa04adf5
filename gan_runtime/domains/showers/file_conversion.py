"""Files of showers become a data set: all are checked by their headers first, then converted part
by part, in the order of their names.

What tells two kinds of files apart is a `FileKind`; the last rows are held out, as the authors hold
out their last files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.errors import DatasetError
from gan_runtime.base.fields import Fields
from gan_runtime.data import hdf5_files
from gan_runtime.data.contract import Arrays, Progress
from gan_runtime.data.hdf5_files import opened
from gan_runtime.data.picture_files import readable
from gan_runtime.data.prepared import Stored
from gan_runtime.data.sharded import RowWriter
from gan_runtime.data.summary import Summary
from gan_runtime.domains.showers import file_units
from gan_runtime.domains.showers.features import rows_of
from gan_runtime.domains.showers.fields import (
    AUTHORS_GRID,
    CELL_UNITS,
    MERGED,
    cells_along,
    shower_fields,
)
from gan_runtime.domains.showers.file_checks import Checks, Cleaned, Part, Rules
from gan_runtime.domains.showers.file_units import FileSample
from gan_runtime.domains.showers.preparation_options import AUTO, AuthorsOptions, ShowerFileOptions

Columns = dict[str, h5py.Dataset]
ENERGIES_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class FileKind:
    """How files of one kind are read.

    `columns(file)`: what is needed of a file, checked; those under the keys `cells` and `energies`
    are the showers. `fields(columns)`: of the rows that become of it. `arranged(cells)`: some rows
    of the cells as (N, X, Y, Z). `rows(showers, others)`: as stored; `others`: the same rows of the
    other columns, with the name of the file. Each raises DatasetError. `at_once`: rows. `usual`:
    units of energies and cells in such files. `faint`: why showers are left out that hold next to
    nothing, the end of a sentence.
    """

    columns: Callable[[h5py.File], Columns]
    fields: Callable[[Columns], Fields]
    cells: str
    energies: str
    arranged: Callable[[NDArray[Any]], NDArray[Any]]
    rows: Callable[[Cleaned, dict[str, NDArray[Any]], str], Arrays]
    rules: Rules
    at_once: int
    usual: tuple[str, str]
    faint: str


@dataclass(frozen=True)
class _Contents:
    """What the headers and the energies of all files say. `showers`: before any is left out."""

    fields: Fields
    showers: int
    lowest: float
    highest: float


def convert(
    source: Path, kind: FileKind, options: ShowerFileOptions, folder: Path, progress: Progress
) -> Stored:
    """Writes the rows of all files into the existing, empty `folder`.

    Raises:
        DatasetError: a file is damaged, of another kind, or of another shape than the first; its
            units or the order of its cells are
            unclear; a part of it cannot be (see `shower_checks`); no row is left.
        HomeError: the disk has too little space.
    """
    found = hdf5_files.source_of(source)
    contents = _contents(found.files, kind)
    checks = Checks(
        kind.rules,
        file_units.units(_sample(found.files[0], kind, contents), options, kind.rules.known),
    )
    total, done = contents.showers, 0
    with RowWriter(folder, contents.fields, total, f"a data set of {total:,} showers") as writer:
        for path in found.files:
            for read, rows in _parts(path, kind, checks):
                writer.append(rows)
                done += read
                progress(done, total, f"Converting {done:,} of {total:,} showers")
    kept = checks.tally.showers
    if not kept:
        raise DatasetError(f"none of the {total:,} showers can be used: each {kind.faint}.")
    summary = Summary(
        held_out=min(int(kept * options.held_out_percent / 100), kept - 1),
        skipped=found.skipped,
        converted=checks.changes(),
        quantities=checks.tally.quantities(),
        curve=checks.tally.profile(),
        warnings=checks.warnings(kind.usual),
        note=checks.note(kind.faint),
    )
    return Stored(contents.fields, writer.shards, summary)


def _contents(files: list[Path], kind: FileKind) -> _Contents:
    known: Fields | None = None
    total, ends = 0, [np.inf, -np.inf]
    for path in files:
        with opened(path) as file:
            columns = kind.columns(file)
            fields = kind.fields(columns)
            if known is not None and fields != known:
                raise DatasetError(
                    f"{hdf5_files.name_of(file)} holds other showers than"
                    f" {readable(files[0].name)}: prepare them one by one."
                )
            known, rows = fields, hdf5_files.same_rows(file, columns)
            for begin in range(0, rows, ENERGIES_AT_ONCE):
                part = hdf5_files.read(
                    file, columns[kind.energies], begin, min(begin + ENERGIES_AT_ONCE, rows)
                )
                ends = [min(ends[0], float(part.min())), max(ends[1], float(part.max()))]
            total += rows
    return _Contents(known or {}, total, *ends)


def _sample(path: Path, kind: FileKind, contents: _Contents) -> FileSample:
    with opened(path) as file:
        columns = kind.columns(file)
        rows = min(len(columns[kind.cells]), kind.at_once)
        cells = kind.arranged(hdf5_files.read(file, columns[kind.cells], 0, rows))
        energies = hdf5_files.read(file, columns[kind.energies], 0, rows).reshape(-1)
        return FileSample(
            hdf5_files.name_of(file), contents.lowest, contents.highest, cells, energies
        )


def _parts(path: Path, kind: FileKind, checks: Checks) -> Iterator[tuple[int, Arrays]]:
    """Of one file: how many rows were read, and those that are kept, as stored."""
    with opened(path) as file:
        columns, name = kind.columns(file), hdf5_files.name_of(file)
        for begin, end in hdf5_files.parts(
            columns, hdf5_files.same_rows(file, columns), kind.at_once
        ):
            read = {
                key: hdf5_files.read(file, numbers, begin, end) for key, numbers in columns.items()
            }
            cells, energies = (
                kind.arranged(read.pop(kind.cells)),
                read.pop(kind.energies).reshape(-1),
            )
            showers = checks.cleaned(Part(name, begin, cells, energies))
            others = {key: numbers.reshape(-1)[showers.kept] for key, numbers in read.items()}
            yield end - begin, kind.rows(showers, others, name)


# ---- files of the authors ------------------------------------------------------------------------

CELLS, ENERGY, ANGLE = "ECAL", "energy", "mtheta"
LEAST_SUM = 10.0  # GeV · 50, of an event: 0.2 GeV seen, about 10 GeV of the electron
AT_ONCE = 32

content = hdf5_files.content


def prepare(source: Path, options: AuthorsOptions, folder: Path, progress: Progress) -> Stored:
    """Writes the rows of all files into the existing, empty `folder`. Raises as `convert`."""
    rules = Rules(
        file_units.THREE_DGAN,
        least_gev=LEAST_SUM / CELL_UNITS,
        threshold=options.threshold,
        threshold_gev=1.0 / CELL_UNITS,
        negative_cells=options.negative_cells,
        order="x_y_layer" if options.order == AUTO else "",
    )
    kind = FileKind(
        columns=columns,
        fields=lambda _columns: fields(options),
        cells=CELLS,
        energies=ENERGY,
        arranged=lambda cells: cells,
        rows=partial(rows, options.grid),
        rules=rules,
        at_once=AT_ONCE,
        usual=("GeV", "20MeV"),
        faint="has at most 10 units, 0.2 GeV, in its cells",
    )
    return convert(source, kind, options, folder, progress)


def fields(options: AuthorsOptions) -> Fields:
    """Of the rows that become of a file."""
    return shower_fields((*cells_along(options.grid), 1))


def columns(file: h5py.File) -> Columns:
    """What is needed of a file. Raises DatasetError."""
    needed = {
        CELLS: hdf5_files.column(file, CELLS, AUTHORS_GRID),
        ENERGY: hdf5_files.column(file, ENERGY, ()),
    }
    return {**needed, ANGLE: hdf5_files.column(file, ANGLE, ())} if ANGLE in file else needed


def rows(grid: str, showers: Cleaned, others: dict[str, NDArray[Any]], name: str) -> Arrays:
    """As stored; angles are measured where there are none, or cells are merged.

    Raises DatasetError.
    """
    merged = MERGED[grid]
    angles = _angles(name, others[ANGLE]) if ANGLE in others and merged == 1 else None
    return rows_of(_merged(showers.cells_gev, merged), showers.energies_gev, angles)


def _merged(cells: NDArray[Any], side: int) -> NDArray[Any]:
    """(N, X, Y, Z) → sums of side · side cells of a layer (N, X / side, Y / side, Z)."""
    if side == 1:
        return cells
    count, x, y, layers = cells.shape
    return cells.reshape(count, x // side, side, y // side, side, layers).sum(axis=(2, 4))


def _angles(name: str, angles: NDArray[Any]) -> NDArray[Any]:
    """As they are. Raises DatasetError for what cannot be rad."""
    if len(angles) and not (angles.min() > 0.0 and angles.max() < np.pi):
        raise DatasetError(
            f"{name}: its mtheta is from {angles.min():g} to {angles.max():g}, "
            "but rad between 0 and π are needed: is it in degrees?"
        )
    return angles
