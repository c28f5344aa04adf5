"""Files of showers become a data set: all headers are read first, then the units are determined,
then each part is checked, cleaned and stored, in the order of the file names. The last rows are
held out, as the authors hold out their last files.

Units are options, or the only ones with which the numbers are showers of a known calorimeter:
incident energies in the range of its data sets, and cells that sum to its share of the energy. If
several units remain, the depth of the showers decides, which grows with the logarithm of the energy
in GeV.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.errors import DatasetError
from gan_runtime.base.fields import Fields
from gan_runtime.data import hdf5_files
from gan_runtime.data.contract import Arrays, Progress
from gan_runtime.data.hdf5_files import open_file
from gan_runtime.data.prepared import Stored
from gan_runtime.data.sharded import RowWriter
from gan_runtime.data.summary import Summary, readable
from gan_runtime.domains.showers.file_checks import (
    CheckedShowers,
    FileChecks,
    FileRules,
    FileUnits,
    Readout,
    ShowerPart,
    limit,
)
from gan_runtime.domains.showers.preparation_options import AUTO, UNITS_GEV, ShowerFileOptions

Columns = dict[str, h5py.Dataset]
ENERGIES_AT_ONCE = 1 << 20
ENERGY_FACTOR = 2.0  # allowed below and above the energies of the known data sets
SHARE_FACTOR = 3.0  # allowed for the share in the cells; units differ by at least 20


@dataclass(frozen=True)
class FileKind:
    """How files of one kind are read.

    `columns(file)`: the needed columns, checked; those under the keys `cells` and `energies` are
    the showers. `fields(columns)`: of the stored rows. `arranged(cells)`: rows of the cells as (N,
    X, Y, Z). `rows(showers, other_columns, name)`: as stored; `other_columns`: their same rows;
    `name`: of the file. Each raises DatasetError. `at_once`: rows. `usual`: units of energies and
    cells in these files. `faint`: why nearly empty showers are skipped, the end of a sentence.
    """

    columns: Callable[[h5py.File], Columns]
    fields: Callable[[Columns], Fields]
    cells: str
    energies: str
    arranged: Callable[[NDArray[Any]], NDArray[Any]]
    rows: Callable[[CheckedShowers, dict[str, NDArray[Any]], str], Arrays]
    rules: FileRules
    at_once: int
    usual: tuple[str, str]
    faint: str


@dataclass(frozen=True)
class FileContents:
    """Headers and energies of all files, in their unit. `showers`: before any is skipped."""

    fields: Fields
    showers: int
    lowest: float
    highest: float


def convert(
    source: Path, kind: FileKind, options: ShowerFileOptions, folder: Path, progress: Progress
) -> Stored:
    """Writes the rows of all files into the existing, empty `folder`.

    Raises:
        DatasetError: a file is damaged, of another kind, or of another shape than the first; units
            or order of its cells are unclear; a part is refused by `FileChecks`; no row remains.
        HomeError: the disk has too little space.
    """
    sources = hdf5_files.source_of(source)
    contents = _contents(sources.files, kind)
    sample = _sample(sources.files[0], kind, contents)
    checks = FileChecks(kind.rules, units(sample, options, kind.rules.readout))
    total, done = contents.showers, 0
    with RowWriter(folder, contents.fields, total, f"a data set of {total:,} showers") as writer:
        for path in sources.files:
            for count, rows in _parts(path, kind, checks):
                writer.append(rows)
                done += count
                progress(done, total, f"Converting {done:,} of {total:,} showers")
    stored = checks.tally.showers
    if not stored:
        raise DatasetError(f"none of the {total:,} showers can be used: each {kind.faint}.")
    summary = Summary(
        held_out=min(int(stored * options.held_out_percent / 100), stored - 1),
        skipped=sources.skipped,
        converted=checks.changes(),
        quantities=checks.tally.quantities(),
        curve=checks.tally.profile(),
        warnings=checks.warnings(kind.usual),
        note=checks.note(kind.faint),
    )
    return Stored(contents.fields, writer.shards, summary)


def _contents(files: list[Path], kind: FileKind) -> FileContents:
    first: Fields | None = None
    total, ends = 0, [np.inf, -np.inf]
    for path in files:
        with open_file(path) as file:
            columns = kind.columns(file)
            fields = kind.fields(columns)
            if first is not None and fields != first:
                raise DatasetError(
                    f"{hdf5_files.name_of(file)} has other showers than"
                    f" {readable(files[0].name)}: prepare them separately."
                )
            first, rows = fields, hdf5_files.same_rows(file, columns)
            for begin in range(0, rows, ENERGIES_AT_ONCE):
                end = min(begin + ENERGIES_AT_ONCE, rows)
                part = hdf5_files.read(file, columns[kind.energies], begin, end)
                ends = [min(ends[0], float(part.min())), max(ends[1], float(part.max()))]
            total += rows
    return FileContents(first or {}, total, *ends)


def _parts(path: Path, kind: FileKind, checks: FileChecks) -> Iterator[tuple[int, Arrays]]:
    """Yields the parts of a file: the number of rows, and the checked rows as stored."""
    with open_file(path) as file:
        columns, name = kind.columns(file), hdf5_files.name_of(file)
        rows = hdf5_files.same_rows(file, columns)
        for begin, end in hdf5_files.parts(columns, rows, kind.at_once):
            part = {
                key: hdf5_files.read(file, numbers, begin, end) for key, numbers in columns.items()
            }
            cells, energies = kind.arranged(part.pop(kind.cells)), part.pop(kind.energies)
            showers = checks.checked(ShowerPart(name, begin, cells, energies.reshape(-1)))
            other_columns = {
                key: numbers.reshape(-1)[showers.used] for key, numbers in part.items()
            }
            yield end - begin, kind.rows(showers, other_columns, name)


# ---- units ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FileSample:
    """`name`: of the file; `lowest`, `highest`: of all energies of all files; `cells` (N, X, Y, Z)
    and `energies` (N,): of the first rows. All in the units of the file.
    """

    name: str
    lowest: float
    highest: float
    cells: NDArray[np.float32]
    energies: NDArray[np.float32]

    def share(self, energies: str, cells: str) -> float:
        """Sum of the cells of a shower over its energy in these units: the median of those that are
        not empty.
        """
        sums = self.cells.sum(axis=(1, 2, 3), dtype=np.float64) * UNITS_GEV[cells]
        shares = (sums / (self.energies * UNITS_GEV[energies]))[sums != 0.0]
        return float(np.median(shares)) if len(shares) else 0.0


def _sample(path: Path, kind: FileKind, contents: FileContents) -> FileSample:
    with open_file(path) as file:
        columns = kind.columns(file)
        rows = min(len(columns[kind.cells]), kind.at_once)
        cells = kind.arranged(hdf5_files.read(file, columns[kind.cells], 0, rows))
        energies = hdf5_files.read(file, columns[kind.energies], 0, rows).reshape(-1)
        return FileSample(
            hdf5_files.name_of(file), contents.lowest, contents.highest, cells, energies
        )


def units(sample: FileSample, options: ShowerFileOptions, readout: Readout) -> FileUnits:
    """Raises DatasetError: no units fit, or several do."""
    if not sample.lowest > 0.0:
        raise DatasetError(
            f"{sample.name}: its lowest incident energy is {sample.lowest:g}, but must be above 0."
        )
    energy_units = _energy_units(sample, options, readout)
    pairs = [
        (energy, cell)
        for energy in energy_units
        for cell in _cell_units(sample, options, readout, energy)
    ]
    if not pairs:
        raise _no_share(sample, energy_units[0], readout)
    if options.energy_unit != AUTO:
        why = "by the option"
    elif len(pairs) > 1:
        why = "by the depth of the showers"
        pairs = [pair for pair in pairs if _fits_depth(sample, pair[0], readout)]
    elif len(energy_units) > 1:
        why = "by the sum of the cells"
    else:
        why = f"the range of {readout.name}"
    if len(pairs) != 1:
        raise DatasetError(
            f"{sample.name}: its incident energies, from {sample.lowest:,.6g} to"
            f" {sample.highest:,.6g}, fit the range of {readout.name} in MeV and in GeV; the"
            " depth of the showers does not decide: set energy_unit."
        )
    energy, cell = pairs[0]
    share = sample.share(energy, cell)
    lowest, highest = (value * UNITS_GEV[energy] for value in (sample.lowest, sample.highest))
    cells_why = "by the option" if options.cell_unit != AUTO else "by their sum"
    reason = (
        f"Energies are in {energy} ({lowest:,.4g} to {highest:,.4g} GeV, {why}), cells in {cell}"
        f" ({cells_why}: {share:.3g} of the energy, where about {readout.sampling_fraction:g} is"
        " expected)"
    )
    return FileUnits(energy, cell, share, reason)


def _energy_units(sample: FileSample, options: ShowerFileOptions, readout: Readout) -> list[str]:
    if options.energy_unit != AUTO:
        return [options.energy_unit]
    fitting = [
        unit
        for unit in ("MeV", "GeV")
        if readout.lowest_gev / ENERGY_FACTOR <= sample.lowest * UNITS_GEV[unit]
        and sample.highest * UNITS_GEV[unit] <= readout.highest_gev * ENERGY_FACTOR
    ]
    if fitting:
        return fitting
    raise DatasetError(
        f"{sample.name}: its incident energies are from {sample.lowest:,.6g} to"
        f" {sample.highest:,.6g}. Neither in MeV nor in GeV is this the range of {readout.name},"
        f" {readout.lowest_gev:,.0f} to {readout.highest_gev:,.0f} GeV. Check for mixed units, or"
        " set energy_unit."
    )


def _cell_units(
    sample: FileSample, options: ShowerFileOptions, readout: Readout, energy: str
) -> list[str]:
    if options.cell_unit != AUTO:
        return [options.cell_unit]
    share = readout.sampling_fraction
    return [
        unit
        for unit in UNITS_GEV
        if share / SHARE_FACTOR < sample.share(energy, unit) < share * SHARE_FACTOR
    ]


def _fits_depth(sample: FileSample, energy: str, readout: Readout) -> bool:
    gev = sample.energies * UNITS_GEV[energy]
    return readout.distance(np.maximum(sample.cells, 0.0), gev) <= limit(len(gev))


def _no_share(sample: FileSample, energy: str, readout: Readout) -> DatasetError:
    shares = ", ".join(f"{sample.share(energy, unit):.2g} in {unit}" for unit in UNITS_GEV)
    return DatasetError(
        f"{sample.name}: the cells of a shower sum to {shares} of the incident energy in {energy};"
        f" data sets of {readout.name} have about {readout.sampling_fraction:g}: convert"
        " them, or set cell_unit."
    )
