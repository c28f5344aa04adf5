"""The preparation `calochallenge`: data sets 2 and 3 of the CaloChallenge, as their files are (calorimeter/calochallenge.py).

Values are (GeV · 50)^0.85, as of all showers here; nothing is left out, and there is no angle: all electrons come straight in.
"""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

from gan_runtime.calorimeter.calochallenge import (
    ALPHA_AXIS,
    ENERGIES,
    GEOMETRIES,
    SHOWERS,
    Geometry,
    cells_gev_of,
)
from gan_runtime.calorimeter.longitudinal import MEV_PER_GEV
from gan_runtime.calorimeter.rows import rows_without_angle
from gan_runtime.data import hdf5_files, shower_conversion
from gan_runtime.data.contract import Arrays, Progress
from gan_runtime.data.prepared import Stored
from gan_runtime.data.shower_conversion import Columns, Kind
from gan_runtime.data.shower_options import CaloChallengeOptions
from gan_runtime.errors import DatasetError
from gan_runtime.fields import Fields
from gan_runtime.shower_fields import shower_fields

AT_ONCE = 256
LEAST_MEV, LARGEST_MEV = 500.0, 2e6  # of an electron: the challenge has 1 GeV to 1 TeV
LEAST_RATIO, LARGEST_RATIO = (
    0.003,
    3.0,
)  # of what all voxels hold, over that: in another unit it is a thousand times off

content = hdf5_files.content


def prepare(source: Path, options: CaloChallengeOptions, folder: Path, progress: Progress) -> Stored:
    """Writes the rows of all files into the existing, empty `folder`. Raises as `shower_conversion.convert`."""
    kind = Kind(columns, fields, rows, AT_ONCE)
    return shower_conversion.convert(source, kind, options.held_out_percent, folder, progress)


def columns(file: h5py.File) -> Columns:
    """What is needed of a file. Raises DatasetError."""
    voxels = [(geometry.voxels,) for geometry in GEOMETRIES]
    return {
        SHOWERS: hdf5_files.column(file, SHOWERS, *voxels),
        ENERGIES: hdf5_files.column(file, ENERGIES, ()),
    }


def fields(columns: Columns) -> Fields:
    """Of the rows that become of a file."""
    return shower_fields((*_geometry(columns).shape, 1), angle=False, periodic=(ALPHA_AXIS,))


def rows(file: h5py.File, columns: Columns, begin: int, end: int) -> Arrays:
    """Some rows as stored. Raises DatasetError."""
    showers = hdf5_files.read(file, columns[SHOWERS], begin, end)
    energies = hdf5_files.read(file, columns[ENERGIES], begin, end).reshape(-1)
    _check_energies(hdf5_files.name_of(file), energies)
    if begin == 0:  # a last part may be a few showers, all of them faint
        _check_showers(hdf5_files.name_of(file), showers, energies)
    cells_gev = cells_gev_of(np.maximum(showers, 0.0), _geometry(columns))
    return rows_without_angle(cells_gev, energies / MEV_PER_GEV)


def _geometry(columns: Columns) -> Geometry:
    return next(geometry for geometry in GEOMETRIES if geometry.voxels == columns[SHOWERS].shape[1])


def _check_energies(name: str, energies: NDArray[np.float32]) -> None:
    """Raises DatasetError for what cannot be MeV."""
    if energies.min() < LEAST_MEV or energies.max() > LARGEST_MEV:
        raise DatasetError(
            f"{name}: its {ENERGIES} are from {energies.min():g} to {energies.max():g}, "
            f"but MeV from {LEAST_MEV:g} to {LARGEST_MEV:,.0f} are needed: is it in GeV?"
        )


def _check_showers(name: str, showers: NDArray[np.float32], energies: NDArray[np.float32]) -> None:
    """Raises DatasetError for showers that are not in MeV as well."""
    ratio = float(np.median(showers.sum(axis=1) / energies))
    if not LEAST_RATIO < ratio < LARGEST_RATIO:
        raise DatasetError(
            f"{name}: its {SHOWERS} sum up to {ratio:.2g} of the {ENERGIES}: both are needed in MeV."
        )
