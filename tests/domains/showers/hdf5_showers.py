"""Small HDF5 files of showers in the formats of the 3DGAN's authors and the CaloChallenge."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from gan_runtime.domains.showers.features import measured_angle
from gan_runtime.domains.showers.simulation import simulate


@functools.cache
def simulated(count: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Cells (count, 51, 51, 25) and energies (count,), GeV. The last one is 5 GeV, too faint for
    the authors' cut.
    """
    energies = np.append(np.linspace(100.0, 200.0, count - 1), 5.0)
    return simulate(energies, np.full(count, np.radians(75.0)), np.random.default_rng(0)), energies


def authors_columns(count: int = 6) -> dict[str, np.ndarray]:
    """ECAL in GeV · 50, energy in GeV, mtheta in rad."""
    cells, energies = simulated(count)
    return {"ECAL": 50.0 * cells, "energy": energies, "mtheta": measured_angle(cells)}


def challenge_columns(
    voxels: int, count: int = 8, order: str = "layer_angle_radius"
) -> dict[str, np.ndarray]:
    """incident_energies (count, 1) and showers (count, voxels), MeV.

    Profiles follow the Review of Particle Physics, section 34.5:
    dE/dt ∝ (t / 2)^(a - 1) exp(-t / 2) with its maximum at ln(E / 8 MeV) - 0.5, in voxels of
    0.8 radiation lengths. They are narrow and round.
    """
    random = np.random.default_rng(1)
    energies = np.geomspace(1_000.0, 1e6, count)[:, None]
    sizes = {6_480: (45, 16, 9), 40_500: (45, 50, 18)}[voxels]
    depths = 0.8 * (np.arange(45) + 0.5)
    shape = (np.log(energies / 8.0) - 0.5) / 2.0
    along = depths**shape * np.exp(-depths / 2.0)
    across = np.exp(-np.arange(sizes[2]) * 9.0 / sizes[2])
    shares = along[:, :, None, None] * across * random.gamma(0.5, size=(count, *sizes))
    axes = ("layer", "angle", "radius")
    shares = shares.transpose(0, *(1 + axes.index(axis) for axis in order.split("_"))).reshape(
        count, -1
    )
    return {
        "incident_energies": energies,
        "showers": 0.9 * energies * shares / shares.sum(axis=1, keepdims=True),
    }


def written(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    """Writes a file with these columns, except those that are None. `options`: of the storage."""
    with h5py.File(path, "w") as file:
        for key, column in columns.items():
            if column is not None:
                file.create_dataset(key, data=column, **options)
    return path
