"""Showers that are converted anew in each epoch, as in the talk, against showers that are converted once.

`each epoch` reads a file of the authors' kind in its order and does to each batch what they do to each file: threshold, cut, angle,
power. `converted once` reads rows of the prepared set, memory-mapped and in a random order, as a streamed run does. Both give
the same values, float32, on the full grid; both read from the system's cache and not from the disk, so it is the work that is compared.
The file is not packed; that would cost `each epoch` more. Besides, how many showers are simulated in a second, on one core.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np

from benchmarks.effort import Effort
from benchmarks.ratios import speed_ratio_of_totals, speed_ratios, spread
from benchmarks.results import Report
from benchmarks.turns import Turn, alternate
from gan_runtime.calorimeter.simulation import simulate
from gan_runtime.data import hdf5_files, prepared, preparing, shower_files
from gan_runtime.data.contract import Array, DataSet
from gan_runtime.data.preparing import Asked
from gan_runtime.data.shower_options import ShowerFileOptions
from gan_runtime.engines.values import host_values
from gan_runtime.home import Home
from gan_runtime.shower_fields import CELL_UNITS

FIGURE, SIMULATED = "converted_over_each_epoch", "simulated_per_s"
WARM_UP_STEPS = 2
AT_ONCE = 32  # showers
ENERGY_GEV = 100.0


@dataclass
class Reading:
    """See `turns.Side`. `batch(number)`: one batch of values, whatever the number."""

    name: str
    batch: Callable[[int], dict[str, Array]]
    number: int = 0

    def turn(self, steps: int) -> Turn:
        """Reads so many batches."""
        begin = time.perf_counter()
        for _ in range(steps):
            self.batch(self.number)
            self.number += 1
        return Turn(steps, time.perf_counter() - begin)


def measure(report: Report, effort: Effort) -> None:
    """Batches of both sides in turns, and the simulation."""
    with tempfile.TemporaryDirectory(prefix="gan-preprocessing-") as folder:
        source, home = Path(folder) / "showers.h5", Home(Path(folder) / "home")
        write(source, effort.images)
        preparing.prepare(home, Asked("showers_hdf5", "showers", source), lambda *_: None)
        showers = prepared.opened(home, "showers", resident_bytes=0)
        with hdf5_files.opened(source) as file:
            sides = [each_epoch(file, effort.batch), converted_once(showers, effort.batch)]
            turns = alternate(sides, effort.rounds, effort.steps, WARM_UP_STEPS, report.turn)
    for name, its_turns in turns.items():
        rates = [effort.batch / turn.step_s for turn in its_turns]
        report.spread("rate", name, spread(rates), unit="images/s")
    anew, once = turns["each epoch"], turns["converted once"]
    report.spread(
        "figure", FIGURE, spread(speed_ratios(once, anew)), of_totals=speed_ratio_of_totals(once, anew)
    )
    report.spread("figure", SIMULATED, spread([simulated_per_s() for _ in range(effort.rounds)]))


def write(path: Path, showers: int) -> None:
    """A file as the authors have them: ECAL in GeV · 50, energy in GeV; the angle is measured when it is read."""
    with h5py.File(path, "w") as file:
        cells = file.create_dataset(
            "ECAL", (showers, shower_files.SIDE, shower_files.SIDE, shower_files.LAYERS), "f4"
        )
        random = np.random.default_rng(0)
        energies = random.uniform(100.0, 200.0, showers)
        file["energy"] = energies
        for begin in range(0, showers, AT_ONCE):
            part = energies[begin : begin + AT_ONCE]
            angles = np.radians(random.uniform(60.0, 120.0, len(part)))
            cells[begin : begin + len(part)] = CELL_UNITS * simulate(part, angles, random)


def each_epoch(file: h5py.File, batch: int) -> Reading:
    """Batches of the file in its order, converted anew."""
    columns = shower_files.columns(file)
    options = ShowerFileOptions()
    batches = hdf5_files.same_rows(file, columns) // batch

    def read(number: int) -> dict[str, Array]:
        begin = (number % batches) * batch
        rows = shower_files.kept_rows(options, file, columns, begin, begin + batch)
        return host_values(rows, shower_files.fields(options))

    return Reading("each epoch", read)


def converted_once(showers: DataSet, batch: int) -> Reading:
    """Batches of any rows of the prepared set."""
    random = np.random.default_rng(1)

    def read(_number: int) -> dict[str, Array]:
        return host_values(showers.read(random.integers(0, showers.rows, batch)), showers.fields)

    return Reading("converted once", read)


def simulated_per_s() -> float:
    """Straight in, on the full grid, without what a data set stores of them."""
    random = np.random.default_rng(2)
    begin = time.perf_counter()
    for _ in range(4):
        simulate(np.full(AT_ONCE, ENERGY_GEV), np.full(AT_ONCE, np.pi / 2.0), random)
    return 4 * AT_ONCE / (time.perf_counter() - begin)
