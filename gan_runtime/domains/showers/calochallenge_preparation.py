"""The preparation `calochallenge`: data sets 2 and 3 of the CaloChallenge, as their files are (domains/showers/calochallenge.py).

Values are (GeV · 50)^0.85, as of all showers here; there is no angle: all electrons come straight in.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import h5py
import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.fields import Fields
from gan_runtime.data import hdf5_files
from gan_runtime.data.contract import Arrays, Progress
from gan_runtime.data.prepared import Stored
from gan_runtime.domains.showers import file_conversion, readout
from gan_runtime.domains.showers.calochallenge import (
    ALPHA_AXIS,
    ENERGIES,
    GEOMETRIES,
    ORDER,
    SHOWERS,
    cells_of,
)
from gan_runtime.domains.showers.fields import shower_fields
from gan_runtime.domains.showers.file_checks import Cleaned, Rules
from gan_runtime.domains.showers.file_conversion import Columns, Kind
from gan_runtime.domains.showers.longitudinal import MEV_PER_GEV
from gan_runtime.domains.showers.preparation_options import AUTO, CaloChallengeOptions, Order
from gan_runtime.domains.showers.rows import rows_without_angle

AT_ONCE = 256
CHALLENGES_ORDER = "_".join(ORDER)

content = hdf5_files.content


def prepare(source: Path, options: CaloChallengeOptions, folder: Path, progress: Progress) -> Stored:
    """Writes the rows of all files into the existing, empty `folder`. Raises as `shower_conversion.convert`."""
    is_checked = options.order == AUTO
    order = CHALLENGES_ORDER if is_checked else options.order
    rules = Rules(
        readout.CALOCHALLENGE,
        least_gev=0.0,
        threshold=options.threshold,
        threshold_gev=1.0 / MEV_PER_GEV,
        negative_cells=options.negative_cells,
        order=order if is_checked else "",
        orders=other_orders,
    )
    kind = Kind(
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
    shape = next(geometry.shape for geometry in GEOMETRIES if geometry.voxels == columns[SHOWERS].shape[1])
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
