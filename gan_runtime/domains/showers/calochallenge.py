"""The HDF5 files of the CaloChallenge 2022 (arXiv:2410.21611), data sets 2 and 3
(doi:10.5281/zenodo.6366270, doi:10.5281/zenodo.6366323).

incident_energies (N, 1) and showers (N, voxels), both in MeV. Voxels lie in the order layer, angle,
radius, the radius running fastest; here a shower is (alpha, r, layer), and alpha closes on itself.
A submission has the format of the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import h5py
import numpy as np
from numpy.typing import NDArray

from gan_runtime.base import disk
from gan_runtime.base.fields import Fields
from gan_runtime.data import hdf5_files
from gan_runtime.data.contract import Arrays, Progress
from gan_runtime.data.prepared import Stored
from gan_runtime.domains.showers import file_conversion, file_units
from gan_runtime.domains.showers.features import rows_without_angle
from gan_runtime.domains.showers.fields import MEV_PER_GEV, shower_fields
from gan_runtime.domains.showers.file_checks import Cleaned, Rules
from gan_runtime.domains.showers.file_conversion import Columns, FileKind
from gan_runtime.domains.showers.preparation_options import AUTO, CaloChallengeOptions, Order

ENERGIES, SHOWERS = "incident_energies", "showers"
AXES = ("angle", "radius", "layer")  # of a shower here
ORDER = ("layer", "angle", "radius")  # in a file, the slowest first
ALPHA_AXIS = 0


@dataclass(frozen=True)
class Geometry:
    """How the voxels of one of the two data sets lie."""

    number: int
    alphas: int
    radii: int
    layers: int = 45

    @property
    def voxels(self) -> int:
        """In one shower."""
        return self.alphas * self.radii * self.layers

    @property
    def shape(self) -> tuple[int, int, int]:
        """(alpha, r, layer) of one shower."""
        return self.alphas, self.radii, self.layers


GEOMETRIES = (Geometry(2, alphas=16, radii=9), Geometry(3, alphas=50, radii=18))


def cells_of(voxels: NDArray[Any], order: tuple[str, ...] = ORDER) -> NDArray[Any]:
    """(N, voxels) → (N, alpha, r, layer): 6,480 voxels are 45 layers of 16 angles of 9 radii, so
    (N, 16, 9, 45). `order`: of the axes in a row, the slowest first, if it is another one than the
    challenge's.
    """
    geometry = next(geometry for geometry in GEOMETRIES if geometry.voxels == voxels.shape[1])
    sizes = dict(zip(AXES, geometry.shape, strict=True))
    by_axis = voxels.reshape(-1, *(sizes[axis] for axis in order))
    return by_axis.transpose(0, *(1 + order.index(axis) for axis in AXES))


def showers_mev_of(cells_gev: NDArray[Any]) -> NDArray[np.float32]:
    """(N, alpha, r, layer) or (N, alpha, r, layer, 1), GeV → (N, voxels), MeV."""
    cells = cells_gev[..., 0] if cells_gev.ndim == 5 else cells_gev
    showers = np.moveaxis(cells, -1, 1).reshape(len(cells), -1) * MEV_PER_GEV
    return showers.astype(np.float32)


def write_submission(path: Path, parts: Iterable[tuple[NDArray[Any], NDArray[Any]]]) -> int:
    """Writes showers as the challenge takes them, packed with gzip; returns how many.

    Nothing is left of a file that cannot be finished.

    `parts`: cells (n, alpha, r, layer) in GeV and their incident energies (n,) in GeV, part by
    part, all of one grid.

    Raises:
        ValueError: no part, or a grid that is none of the challenge's.
        OSError: the file cannot be written.
    """
    with (
        disk.whole_file(path, aside=path.with_name(f".{path.name}.part")) as aside,
        h5py.File(aside, "w") as file,
    ):
        count = sum(_append(file, cells_gev, energies_gev) for cells_gev, energies_gev in parts)
        if not count:
            raise ValueError("there are no showers to write")
    return count


def _append(file: h5py.File, cells_gev: NDArray[Any], energies_gev: NDArray[Any]) -> int:
    showers = showers_mev_of(cells_gev)
    if cells_gev.shape[1:4] not in {geometry.shape for geometry in GEOMETRIES}:
        raise ValueError(f"showers of {cells_gev.shape[1:4]} are none of the CaloChallenge")
    energies = energies_gev.reshape(-1, 1).astype(np.float32) * np.float32(MEV_PER_GEV)
    for key, rows in ((SHOWERS, showers), (ENERGIES, energies)):
        if key not in file:
            file.create_dataset(
                key,
                (0, rows.shape[1]),
                np.float32,
                maxshape=(None, rows.shape[1]),
                compression="gzip",
            )
        begin = len(file[key])
        file[key].resize(begin + len(rows), axis=0)
        file[key][begin:] = rows
    return len(showers)


# ---- calochallenge preparation -------------------------------------------------------------------
# The preparation `calochallenge`: data sets 2 and 3 of the CaloChallenge, as their files are
# (domains/showers/calochallenge.py).
#
# Values are (GeV · 50)^0.85, as of all showers here; there is no angle: all electrons come straight
# in.

AT_ONCE = 256
CHALLENGES_ORDER = "_".join(ORDER)

content = hdf5_files.content


def prepare(
    source: Path, options: CaloChallengeOptions, folder: Path, progress: Progress
) -> Stored:
    """Writes the rows of all files into the existing, empty `folder`.

    Raises as `shower_conversion.convert`.
    """
    is_checked = options.order == AUTO
    order = CHALLENGES_ORDER if is_checked else options.order
    rules = Rules(
        file_units.CALOCHALLENGE,
        least_gev=0.0,
        threshold=options.threshold,
        threshold_gev=1.0 / MEV_PER_GEV,
        negative_cells=options.negative_cells,
        order=order if is_checked else "",
        orders=other_orders,
    )
    kind = FileKind(
        columns=columns,
        fields=fields,
        cells=SHOWERS,
        energies=ENERGIES,
        arranged=lambda voxels: cells_of(voxels, tuple(order.split("_"))),
        rows=rows,
        rules=rules,
        at_once=AT_ONCE,
        usual=("MeV", "MeV"),
        faint="has nothing in its cells",
    )
    return file_conversion.convert(source, kind, options, folder, progress)


def columns(file: h5py.File) -> Columns:
    """What is needed of a file. Raises DatasetError."""
    voxels = [(geometry.voxels,) for geometry in GEOMETRIES]
    return {
        SHOWERS: hdf5_files.column(file, SHOWERS, *voxels),
        ENERGIES: hdf5_files.column(file, ENERGIES, ()),
    }


def fields(columns: Columns) -> Fields:
    """Of the rows that become of a file."""
    shape = next(
        geometry.shape for geometry in GEOMETRIES if geometry.voxels == columns[SHOWERS].shape[1]
    )
    return shower_fields((*shape, 1), angle=False, periodic=(ALPHA_AXIS,))


def rows(showers: Cleaned, _others: dict[str, NDArray[Any]], _name: str) -> Arrays:
    """As stored."""
    return rows_without_angle(showers.cells_gev, showers.energies_gev)


def other_orders(cells: NDArray[Any]) -> Iterator[tuple[str, NDArray[Any]]]:
    """Showers (N, alpha, r, layer) that were taken in the order of the challenge, in all others."""
    voxels = np.moveaxis(cells, -1, 1).reshape(len(cells), -1)
    for order in get_args(Order):
        if order not in (AUTO, CHALLENGES_ORDER):
            yield order, cells_of(voxels, tuple(order.split("_")))
