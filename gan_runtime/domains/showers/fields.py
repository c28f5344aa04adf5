"""What a row of showers holds, and the value of a cell: (energy in GeV · 50)^0.85.

The unit and the power are those of the authors' files and of their training
(github.com/recardoso/ISC_HPC_3DGAN): about 1/50 of the energy is visible, so the sum of the cells
in this unit is about the incident energy in GeV, and the power brings the many faint cells closer
to the few bright ones. The conversion is in domains/showers/features.py, which needs NumPy; the
catalog does not.
"""

from __future__ import annotations

from gan_runtime.base.fields import Field, Fields

SHOWERS = "showers"  # (X, Y, Z, 1): two lateral axes, then depth
ENERGY = "energy"  # of the incident particle; its value is E / 100 GeV
ANGLE = "angle"  # measured on the shower; missing in a data set without angles
DEPOSIT = "deposit"  # sum of the cells, before the power
BELIEF = "belief"  # the discriminator's probability that a shower is simulated; not a field

AUTHORS_GRID = (51, 51, 25)  # cells along x, y, z
MERGED = {"full": 1, "tiny": 3}  # name of a grid → the authors' cells a side that are summed to one
CELL_UNITS = 50.0  # of a cell, per GeV
POWER = 0.85
MEV_PER_GEV = 1_000.0
ENERGY_SCALE = 0.01  # of the incident energy, per GeV


def cells_along(grid: str) -> tuple[int, int, int]:
    """x, y, z of a grid: 51, 51, 25 of the full one, 17, 17, 25 of the tiny one."""
    x, y, z = AUTHORS_GRID
    return x // MERGED[grid], y // MERGED[grid], z


def shower_fields(
    shape: tuple[int, int, int, int], angle: bool = True, periodic: tuple[int, ...] = ()
) -> Fields:
    """The fields of a data set of showers. `shape`: (X, Y, Z, 1); `periodic`: its periodic axes."""
    fields = {
        SHOWERS: Field(shape, dtype="float16", unit="(20 MeV)^0.85", periodic=periodic),
        ENERGY: Field((), dtype="float32", scale=ENERGY_SCALE, unit="100 GeV"),
        DEPOSIT: Field((), dtype="float32", unit="20 MeV"),
    }
    return {**fields, ANGLE: Field((), dtype="float32", unit="rad")} if angle else fields
