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

from gan_runtime.base.errors import DatasetError
from gan_runtime.base.fields import Fields
from gan_runtime.data import hdf5_files
from gan_runtime.data.contract import Arrays, Progress
from gan_runtime.data.prepared import Stored
from gan_runtime.domains.showers import file_conversion, file_units
from gan_runtime.domains.showers.cells import rows_of
from gan_runtime.domains.showers.fields import AUTHORS_GRID, CELL_UNITS, MERGED, cells_along, shower_fields
from gan_runtime.domains.showers.file_checks import Cleaned, Rules
from gan_runtime.domains.showers.file_conversion import Columns, FileKind
from gan_runtime.domains.showers.preparation_options import AUTO, AuthorsOptions

CELLS, ENERGY, ANGLE = "ECAL", "energy", "mtheta"
LEAST_SUM = 10.0  # GeV · 50, of an event: 0.2 GeV seen, about 10 GeV of the electron
AT_ONCE = 32

content = hdf5_files.content


def prepare(source: Path, options: AuthorsOptions, folder: Path, progress: Progress) -> Stored:
    """Writes the rows of all files into the existing, empty `folder`. Raises as `shower_conversion.convert`."""
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
    return file_conversion.convert(source, kind, options, folder, progress)


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
    """As stored; angles are measured where there are none, or cells are merged. Raises DatasetError."""
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
