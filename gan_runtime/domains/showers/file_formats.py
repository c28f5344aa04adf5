"""The HDF5 files of the 3DGAN's authors and of the CaloChallenge 2022 (arXiv:2410.21611), data sets
2 and 3 (doi:10.5281/zenodo.6366270, doi:10.5281/zenodo.6366323).

Authors: ECAL (N, 51, 51, 25) in GeV · 50, energy (N,) in GeV, mtheta (N,) in rad.
CaloChallenge: incident_energies (N, 1) and showers (N, voxels), both in MeV. Voxels are in the
order layer, angle, radius, the radius fastest; here a shower is (alpha, r, layer), alpha is
periodic, and all electrons have perpendicular incidence. A submission has the format of the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, get_args

import h5py
import numpy as np
from numpy.typing import NDArray

from gan_runtime.base import disk
from gan_runtime.base.errors import DatasetError
from gan_runtime.base.fields import Fields
from gan_runtime.data import hdf5_files
from gan_runtime.data.contract import Arrays, Progress
from gan_runtime.data.prepared import Stored
from gan_runtime.domains.showers.detector import CLIC, SILICON, Material, Medium
from gan_runtime.domains.showers.entry import (
    AUTHORS_GRID,
    CELL_UNITS,
    MERGED,
    MEV_PER_GEV,
    cells_along,
    shower_fields,
)
from gan_runtime.domains.showers.features import rows_of, rows_without_angle
from gan_runtime.domains.showers.file_checks import CheckedShowers, FileRules, Readout
from gan_runtime.domains.showers.file_conversion import Columns, FileKind, convert
from gan_runtime.domains.showers.preparation_options import (
    AUTO,
    AuthorsOptions,
    CaloChallengeOptions,
    Order,
)

content = hdf5_files.content


def prepare(
    source: Path, options: AuthorsOptions | CaloChallengeOptions, folder: Path, progress: Progress
) -> Stored:
    """Writes the rows of all files into the existing, empty `folder`. Raises as `convert`."""
    kind = authors(options) if isinstance(options, AuthorsOptions) else calochallenge(options)
    return convert(source, kind, options, folder, progress)


# ---- 3DGAN's authors -----------------------------------------------------------------------------

CELLS, ENERGY, ANGLE = "ECAL", "energy", "mtheta"
LEAST_SUM = 10.0  # GeV · 50, of an event: 0.2 GeV visible, about 10 GeV of the electron
AUTHORS_AT_ONCE = 32  # rows
THREE_DGAN = Readout(
    "the 3DGAN's authors",
    sampling_fraction=0.02,
    lowest_gev=2.0,
    highest_gev=500.0,
    medium=CLIC.medium,
    edges_x0=CLIC.edges_x0,
    visible=CLIC.density_seen,
)


def authors(options: AuthorsOptions) -> FileKind:
    """The file kind of the authors' files, with these options."""
    rules = FileRules(
        THREE_DGAN,
        least_gev=LEAST_SUM / CELL_UNITS,
        threshold=options.threshold,
        threshold_gev=1.0 / CELL_UNITS,
        negative_cells=options.negative_cells,
        order="x_y_layer" if options.order == AUTO else "",
    )
    return FileKind(
        columns=authors_columns,
        fields=lambda _columns: shower_fields((*cells_along(options.grid), 1)),
        cells=CELLS,
        energies=ENERGY,
        arranged=lambda cells: cells,
        rows=partial(authors_rows, options.grid),
        rules=rules,
        at_once=AUTHORS_AT_ONCE,
        usual=("GeV", "20MeV"),
        faint="has at most 10 units, 0.2 GeV, in its cells",
    )


def authors_columns(file: h5py.File) -> Columns:
    """The needed columns of a file. Raises DatasetError."""
    columns = {
        CELLS: hdf5_files.column(file, CELLS, AUTHORS_GRID),
        ENERGY: hdf5_files.column(file, ENERGY, ()),
    }
    return {**columns, ANGLE: hdf5_files.column(file, ANGLE, ())} if ANGLE in file else columns


def authors_rows(
    grid: str, showers: CheckedShowers, other_columns: dict[str, NDArray[Any]], name: str
) -> Arrays:
    """Angles are measured where the file has none, and for merged cells."""
    side, cells = MERGED[grid], showers.cells_gev
    if side == 1:
        angles = _angles(name, other_columns[ANGLE]) if ANGLE in other_columns else None
        return rows_of(cells, showers.energies_gev, angles)
    count, x, y, layers = cells.shape
    merged = cells.reshape(count, x // side, side, y // side, side, layers).sum(axis=(2, 4))
    return rows_of(merged, showers.energies_gev)


def _angles(name: str, angles: NDArray[Any]) -> NDArray[Any]:
    """Raises DatasetError for values that cannot be rad."""
    if len(angles) and not (angles.min() > 0.0 and angles.max() < np.pi):
        raise DatasetError(
            f"{name}: its mtheta is from {angles.min():g} to {angles.max():g}, but must be between"
            " 0 and π rad: convert it from degrees."
        )
    return angles


# ---- CaloChallenge -------------------------------------------------------------------------------

ENERGIES, SHOWERS = "incident_energies", "showers"
AXES = ("angle", "radius", "layer")  # axes of a shower here
ORDER = ("layer", "angle", "radius")  # axes in a file, slowest first
CHALLENGE_ORDER = "_".join(ORDER)
ALPHA_AXIS = 0
CHALLENGE_AT_ONCE = 256  # rows
# arXiv:2410.21611: 90 layers of 1.4 mm of tungsten and 0.3 mm of silicon, two of which are one
# voxel. The energies of the voxels are divided by 0.033, the fraction that the silicon sees
# (code/evaluate.py of the challenge: a readout threshold of 0.5 keV / 0.033), so they sum to about
# E.
_TUNGSTEN = Material(74.0, 19.3, 3.504, 7.97)  # pure
_VOXEL_X0 = 2 * (1.4 / _TUNGSTEN.radiation_length_mm + 0.3 / SILICON.radiation_length_mm)
CALOCHALLENGE = Readout(
    "the CaloChallenge",
    sampling_fraction=1.0,
    lowest_gev=1.0,
    highest_gev=1_000.0,
    medium=Medium.of(_TUNGSTEN, 1.4, SILICON, 0.3, gaps_mm=0.0),
    edges_x0=_VOXEL_X0 * np.arange(46.0),
    visible=np.ones(45),
    periodic=True,
)


@dataclass(frozen=True)
class Geometry:
    """The voxels of one of the two data sets."""

    number: int
    alphas: int
    radii: int
    layers: int = 45

    @property
    def voxels(self) -> int:
        """The number of voxels of a shower."""
        return self.alphas * self.radii * self.layers

    @property
    def shape(self) -> tuple[int, int, int]:
        """(alpha, r, layer) of one shower."""
        return self.alphas, self.radii, self.layers


GEOMETRIES = (Geometry(2, alphas=16, radii=9), Geometry(3, alphas=50, radii=18))


def calochallenge(options: CaloChallengeOptions) -> FileKind:
    """The file kind of the challenge's files, with these options."""
    is_checked = options.order == AUTO
    order = CHALLENGE_ORDER if is_checked else options.order
    rules = FileRules(
        CALOCHALLENGE,
        least_gev=0.0,
        threshold=options.threshold,
        threshold_gev=1.0 / MEV_PER_GEV,
        negative_cells=options.negative_cells,
        order=order if is_checked else "",
        orders=_other_orders,
    )
    return FileKind(
        columns=_challenge_columns,
        fields=_challenge_fields,
        cells=SHOWERS,
        energies=ENERGIES,
        arranged=lambda voxels: cells_of(voxels, tuple(order.split("_"))),
        rows=lambda showers, _other_columns, _name: rows_without_angle(
            showers.cells_gev, showers.energies_gev
        ),
        rules=rules,
        at_once=CHALLENGE_AT_ONCE,
        usual=("MeV", "MeV"),
        faint="has nothing in its cells",
    )


def _challenge_columns(file: h5py.File) -> Columns:
    voxels = [(geometry.voxels,) for geometry in GEOMETRIES]
    return {
        SHOWERS: hdf5_files.column(file, SHOWERS, *voxels),
        ENERGIES: hdf5_files.column(file, ENERGIES, ()),
    }


def _challenge_fields(columns: Columns) -> Fields:
    shape = _geometry(columns[SHOWERS].shape[1]).shape
    return shower_fields((*shape, 1), angle=False, periodic=(ALPHA_AXIS,))


def _geometry(voxels: int) -> Geometry:
    return next(geometry for geometry in GEOMETRIES if geometry.voxels == voxels)


def _other_orders(cells: NDArray[Any]) -> Iterator[tuple[str, NDArray[Any]]]:
    """Showers (N, alpha, r, layer), read in the challenge's order, in all other orders."""
    voxels = np.moveaxis(cells, -1, 1).reshape(len(cells), -1)
    for order in get_args(Order):
        if order not in (AUTO, CHALLENGE_ORDER):
            yield order, cells_of(voxels, tuple(order.split("_")))


def cells_of(voxels: NDArray[Any], order: tuple[str, ...] = ORDER) -> NDArray[Any]:
    """(N, voxels) → (N, alpha, r, layer): 6,480 voxels are 45 layers of 16 angles of 9 radii, so
    (N, 16, 9, 45). `order`: of the axes in a row, the slowest first.
    """
    sizes = dict(zip(AXES, _geometry(voxels.shape[1]).shape, strict=True))
    by_axis = voxels.reshape(-1, *(sizes[axis] for axis in order))
    return by_axis.transpose(0, *(1 + order.index(axis) for axis in AXES))


def showers_mev_of(cells_gev: NDArray[Any]) -> NDArray[np.float32]:
    """(N, alpha, r, layer) or (N, alpha, r, layer, 1), GeV → (N, voxels), MeV."""
    cells = cells_gev[..., 0] if cells_gev.ndim == 5 else cells_gev
    showers = np.moveaxis(cells, -1, 1).reshape(len(cells), -1) * MEV_PER_GEV
    return showers.astype(np.float32)


def write_submission(path: Path, parts: Iterable[tuple[NDArray[Any], NDArray[Any]]]) -> int:
    """Writes showers in the format of the challenge, packed with gzip; returns how many. Leaves no
    unfinished file.

    `parts`: cells (n, alpha, r, layer) in GeV and their incident energies (n,) in GeV, all on one
    grid.

    Raises:
        ValueError: there is no part, or the grid is not the challenge's.
        OSError: the file cannot be written.
    """
    with (
        disk.whole_file(path, partial=path.with_name(f".{path.name}.part")) as part_path,
        h5py.File(part_path, "w") as file,
    ):
        count = sum(_append(file, cells_gev, energies_gev) for cells_gev, energies_gev in parts)
        if not count:
            raise ValueError("there are no showers to write")
    return count


def _append(file: h5py.File, cells_gev: NDArray[Any], energies_gev: NDArray[Any]) -> int:
    showers = showers_mev_of(cells_gev)
    if cells_gev.shape[1:4] not in {geometry.shape for geometry in GEOMETRIES}:
        raise ValueError(f"the CaloChallenge has no showers of {cells_gev.shape[1:4]}")
    energies = energies_gev.reshape(-1, 1).astype(np.float32) * np.float32(MEV_PER_GEV)
    for key, rows in ((SHOWERS, showers), (ENERGIES, energies)):
        if key not in file:
            shape, most = (0, rows.shape[1]), (None, rows.shape[1])
            file.create_dataset(key, shape, np.float32, maxshape=most, compression="gzip")
        begin = len(file[key])
        file[key].resize(begin + len(rows), axis=0)
        file[key][begin:] = rows
    return len(showers)
