"""The work of the job that makes showers of one energy and angle: a checkpoint is asked for
them, beside simulated ones of the same.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.errors import DatasetError
from gan_runtime.data.contract import DataSet
from gan_runtime.domains.showers import simulation
from gan_runtime.domains.showers.cells import measured_angle, rows_of
from gan_runtime.domains.showers.curves import whole
from gan_runtime.domains.showers.fields import ANGLE, ENERGY, ENERGY_SCALE, SHOWERS
from gan_runtime.domains.showers.measurement import of_values, pictures_of, stored_curve
from gan_runtime.domains.showers.pictures import cells_in_gev
from gan_runtime.domains.showers.scores import ShowerSample, sample
from gan_runtime.domains.showers.simulation import GRIDS, DetectorGrid
from gan_runtime.domains.showers.single_energy import CHOSEN_FILE, Chosen, ChosenShowers
from gan_runtime.engines.inputs import host_values
from gan_runtime.jobs.task import Task
from gan_runtime.records.run_folder import write_whole

AT_ONCE = 25  # simulated together
INCIDENCES, TRIED = (45.0, 135.0), 7  # degrees; as far as data sets of simulated showers go
PICTURED = 1  # pairs that are kept to be looked at
CANDIDATES = 2_000  # held-out showers among which the nearest are looked for
Values = dict[str, NDArray[Any]]


def make(task: Task) -> dict[str, Any]:
    """Options: those of `Chosen`. Writes CHOSEN_FILE; gives the step of the checkpoint.

    Raises:
        CheckpointError, DatasetError, SpecError: see `trained.of_run`.
        UnknownRunError: the run is gone.
    """
    wanted = Chosen(**task.options)
    task.progress(0, 4, "building the networks")
    from gan_runtime.training import trained  # as in physics_work.py

    networks = trained.of_run(task.home.run_dir(wanted.run_id), task.home, wanted.checkpoint)
    task.progress(1, 4, "simulating showers")
    rows, simulated = beside(networks.data, wanted)
    task.progress(2, 4, "generating showers")
    shown = networks.generated_for(rows, wanted.seed)
    task.progress(3, 4, "measuring both")
    fields = networks.data.fields
    real = of_values(rows, fields)
    asked = rows[ANGLE].astype(np.float64) if ANGLE in rows else None
    made = sample(
        cells_in_gev(shown[SHOWERS]), real.features.energy_gev, asked, fields[SHOWERS].periodic
    )
    record = record_of(wanted, networks.checkpoint.step, simulated, real, made)
    write_whole(task.results / CHOSEN_FILE, record.model_dump_json())
    task.progress(4, 4, "done")
    return {"step": networks.checkpoint.step, "warnings": list(networks.checkpoint.warnings)}


def beside(data: DataSet, wanted: Chosen) -> tuple[Values, bool]:
    """Showers of the wanted energy and angle, values by field, and whether they are simulated for
    it.

    Where the grid is none of the simulator's, they are the held-out ones that come nearest, each
    with its own energy and angle.
    """
    grid = next(
        (grid for grid in GRIDS.values() if grid.shape == data.fields[SHOWERS].shape[:3]), None
    )
    if grid is not None and wanted.angle_deg is not None and ANGLE in data.fields:
        random = np.random.default_rng(wanted.seed)
        angle = incidence(wanted.energy_gev, math.radians(wanted.angle_deg), random, grid)
        cells = _simulated(wanted.energy_gev, angle, wanted.showers, random, grid)
        return (
            host_values(rows_of(cells, np.full(len(cells), wanted.energy_gev)), data.fields),
            True,
        )
    return _nearest(host_values(data.read_held_out(CANDIDATES), data.fields), wanted), False


def incidence(
    energy_gev: float, measured: float, random: np.random.Generator, grid: DetectorGrid
) -> float:
    """The angle of incidence at which showers measure `measured` on average, both rad: between
    those of a few angles on a straight line. The image of cells three times as wide as deep leans a
    third as much, so both differ.

    Raises:
        DatasetError: no incidence from 45° to 135° gives it.
    """
    angles = np.radians(np.linspace(*INCIDENCES, TRIED))
    means = [
        measured_angle(_simulated(energy_gev, angle, AT_ONCE, random, grid)).mean()
        for angle in angles
    ]
    if not means[0] <= measured <= means[-1]:
        low, high = (math.degrees(means[place]) for place in (0, -1))
        raise DatasetError(
            f"angle_deg is {math.degrees(measured):.4g}, but showers on this grid measure {low:.0f}"
            f" to {high:.0f} at {energy_gev:.4g} GeV: use an angle in this range."
        )
    return float(np.interp(measured, means, angles))


def _simulated(
    energy_gev: float, angle: float, count: int, random: np.random.Generator, grid: DetectorGrid
) -> NDArray[np.float32]:
    """Cells (count, X, Y, Z) in GeV."""
    energies, angles = (np.full(AT_ONCE, value) for value in (energy_gev, angle))
    parts = [
        simulation.simulate(energies, angles, random, grid) for _ in range(-(-count // AT_ONCE))
    ]
    return np.concatenate(parts)[:count]


def _nearest(values: Values, wanted: Chosen) -> Values:
    """By the factor between the energies, and the difference of the angles in rad."""
    away = np.abs(np.log(values[ENERGY] / (ENERGY_SCALE * wanted.energy_gev)))
    if ANGLE in values and wanted.angle_deg is not None:
        away = away + np.abs(values[ANGLE] - math.radians(wanted.angle_deg))
    places = np.argsort(away, kind="stable")[: wanted.showers]
    return {name: array[places] for name, array in values.items()}


def record_of(
    wanted: Chosen, step: int, simulated: bool, real: ShowerSample, made: ShowerSample
) -> ChosenShowers:
    """What the page draws: profiles and distributions of all of them, and a pair to look at."""
    sides = {"real": real, "generated": made}
    has_angle = not np.isnan(real.features.angle).any()
    none = np.empty(0)
    return ChosenShowers(
        energy_gev=wanted.energy_gev,
        angle=None if wanted.angle_deg is None else math.radians(wanted.angle_deg),
        simulated=simulated,
        step=step,
        showers=len(real),
        grid=real.cells_gev.shape[1:],
        response={
            side: float(one.features.sampling_fraction.mean()) for side, one in sides.items()
        },
        measured=(
            {side: float(one.features.angle.mean()) for side, one in sides.items()}
            if has_angle
            else None
        ),
        curves=[stored_curve(curve, none, none) for curve in whole(real, made)],
        pictures=[
            shower for row in range(PICTURED) for shower in pictures_of(row, row, real, made)
        ],
    )
