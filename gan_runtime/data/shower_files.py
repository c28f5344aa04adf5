"""The preparation `showers_hdf5`: the files of the 3DGAN's authors, such as Ele_VarAngleMeas_100_200_000.h5 (doi:10.5281/zenodo.3603086).

ECAL (N, 51, 51, 25), cells in GeV · 50; energy (N,), GeV; mtheta (N,), rad, the angle measured on the image: where a file has none, or
cells are merged, it is measured here. The steps are the authors' (github.com/recardoso/ISC_HPC_3DGAN), done once: cells below the
threshold become 0, events of up to 10 units are dropped, values are cells^0.85.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from gan_runtime.calorimeter.rows import rows_of
from gan_runtime.data import hdf5_files, shower_conversion
from gan_runtime.data.contract import Arrays, Progress
from gan_runtime.data.prepared import Stored
from gan_runtime.data.shower_conversion import Columns, Kind
from gan_runtime.data.shower_options import ShowerFileOptions
from gan_runtime.errors import DatasetError
from gan_runtime.fields import Fields
from gan_runtime.shower_fields import AUTHORS_GRID, CELL_UNITS, MERGED, cells_along, shower_fields

CELLS, ENERGY, ANGLE = "ECAL", "energy", "mtheta"
LEAST_SUM = 10.0  # GeV · 50, of an event: 0.2 GeV seen, about 10 GeV of the electron
AT_ONCE = 32
# The sum of the cells is about the energy. In another unit it is far from it: 1/50 in GeV, 20 in MeV.
LEAST_RATIO, LARGEST_RATIO = 0.2, 5.0
LARGEST_GEV = 2_000.0

content = hdf5_files.content


def prepare(source: Path, options: ShowerFileOptions, folder: Path, progress: Progress) -> Stored:
    """Writes the rows of all files into the existing, empty `folder`. Raises as `shower_conversion.convert`."""
    kind = Kind(
        columns=columns,
        fields=lambda _columns: fields(options),
        rows=partial(kept_rows, options),
        at_once=AT_ONCE,
        left_out="has at most 10 units, 0.2 GeV, in its cells",
    )
    return shower_conversion.convert(source, kind, options.held_out_percent, folder, progress)


def fields(options: ShowerFileOptions) -> Fields:
    """Of the rows that become of a file."""
    return shower_fields((*cells_along(options.grid), 1))


def columns(file: h5py.File) -> Columns:
    """What is needed of a file. Raises DatasetError."""
    needed = {
        CELLS: hdf5_files.column(file, CELLS, AUTHORS_GRID),
        ENERGY: hdf5_files.column(file, ENERGY, ()),
    }
    return {**needed, ANGLE: hdf5_files.column(file, ANGLE, ())} if ANGLE in file else needed


def kept_rows(options: ShowerFileOptions, file: h5py.File, columns: Columns, begin: int, end: int) -> Arrays:
    """The events from `begin` to `end` with more than 10 units, as stored. Raises DatasetError."""
    read = {key: hdf5_files.read(file, numbers, begin, end) for key, numbers in columns.items()}
    cells, energies = read[CELLS], read[ENERGY].reshape(-1)
    _check_energies(hdf5_files.name_of(file), energies)
    if begin == 0:  # a last part may be a few events, all of them empty
        _check_cells(hdf5_files.name_of(file), cells.sum(axis=(1, 2, 3)), energies)
    cells[cells < max(options.threshold, 0.0)] = 0.0
    kept = cells.sum(axis=(1, 2, 3)) > LEAST_SUM
    merged = MERGED[options.grid]
    angles = _angles(file, read[ANGLE].reshape(-1)[kept]) if ANGLE in read and merged == 1 else None
    return rows_of(_merged(cells[kept], merged) / np.float32(CELL_UNITS), energies[kept], angles)


def _merged(cells: NDArray[Any], side: int) -> NDArray[Any]:
    """(N, X, Y, Z) → sums of side · side cells of a layer (N, X / side, Y / side, Z)."""
    if side == 1:
        return cells
    count, x, y, layers = cells.shape
    return cells.reshape(count, x // side, side, y // side, side, layers).sum(axis=(2, 4))


def _check_energies(name: str, energies: NDArray[Any]) -> None:
    """Raises DatasetError for what cannot be GeV."""
    if energies.min() <= 0.0 or energies.max() > LARGEST_GEV:
        raise DatasetError(
            f"{name}: its energy is from {energies.min():g} to {energies.max():g}, "
            f"but GeV above 0 and up to {LARGEST_GEV:g} are needed: is it in MeV?"
        )


def _check_cells(name: str, sums: NDArray[Any], energies: NDArray[Any]) -> None:
    """Raises DatasetError for cells that are not in GeV · 50. `sums`: of each event's, before the threshold."""
    ratio = float(np.median(sums / energies))
    if not LEAST_RATIO < ratio < LARGEST_RATIO:
        raise DatasetError(
            f"{name}: the cells of its ECAL sum up to {ratio:.2g} of the energy, but in GeV · 50, as the authors' files have "
            "it, to about 1: in GeV it would be 0.02, in MeV 20. Convert it first."
        )


def _angles(file: h5py.File, angles: NDArray[Any]) -> NDArray[Any]:
    """As they are. Raises DatasetError for what cannot be rad."""
    if len(angles) and not (angles.min() > 0.0 and angles.max() < np.pi):
        raise DatasetError(
            f"{hdf5_files.name_of(file)}: its mtheta is from {angles.min():g} to {angles.max():g}, "
            "but rad between 0 and π are needed: is it in degrees?"
        )
    return angles
