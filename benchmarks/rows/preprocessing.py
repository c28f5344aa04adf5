"""Showers converted in each epoch, as their authors do, against showers converted once
(shower_set.py).

Reading: batches of the full grid as float32 values, both sides from the page cache, so only the
conversion differs. The file is not compressed; that would cost more to read. Training: the small
networks on the small grid, in turns, and the time that a step waits for showers, in a profile. Rows
are read ahead, so a slow step does not wait, and conversion costs only the cores that it takes from
the step. Simulation: showers per second on one core.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from benchmarks import shower_set
from benchmarks.effort import Effort
from benchmarks.ratios import speed_ratio_of_totals, speed_ratios, spread
from benchmarks.results import Report
from benchmarks.rows.input import share_of
from benchmarks.run_options import SHOWERS, SHOWERS_PER_EPOCH
from benchmarks.trial import trial_home
from benchmarks.turns import Turn, alternate
from gan_runtime.data import loading
from gan_runtime.data.contract import Array, DataSet
from gan_runtime.domains.showers.simulation import simulate
from gan_runtime.engines.inputs import host_values

FIGURE, SIMULATED, WAITING = "converted_over_each_epoch", "simulated_per_s", "input_share"
PER_EPOCH, ONCE = "converted in each epoch", "converted once"
DATA = {PER_EPOCH: SHOWERS_PER_EPOCH, ONCE: SHOWERS}
PRECISION = "mixed_bfloat16"
WARM_UP_STEPS = 2
CHUNK = 32  # showers simulated at once
ENERGY_GEV = 100.0


@dataclass
class ReadingSide:
    """A `turns.Side` that reads batches of random rows of a data set."""

    name: str
    showers: DataSet
    batch: int
    random: np.random.Generator

    def turn(self, steps: int) -> Turn:
        """Reads `steps` batches."""
        begin = time.perf_counter()
        for _ in range(steps):
            self.read_batch()
        return Turn(steps, time.perf_counter() - begin)

    def read_batch(self) -> dict[str, Array]:
        """One batch, as the values that networks get."""
        indices = self.random.integers(0, self.showers.rows, self.batch)
        return host_values(self.showers.read(indices), self.showers.fields)


def measure(report: Report, effort: Effort) -> None:
    """Adds reading, training and waiting of both sides, and the simulation."""
    compare_reading(report, effort)
    compare_training(report, effort)
    for name, data in DATA.items():
        share = share_of(effort, data).get("input", 0.0)
        report.spread("rate", f"waiting, {name}", spread([100.0 * share]), unit="% of a step")
        if name == ONCE:
            report.add("figure", name=WAITING, value=share, count=1)
    report.spread("figure", SIMULATED, spread([simulated_per_s() for _ in range(effort.rounds)]))


def compare_training(report: Report, effort: Effort) -> None:
    """Adds the showers per second that the bare engine trains on, for each side."""
    commands = {
        f"training, {name}": effort.trainer_command("engine_side", PRECISION, data=data)
        for name, data in DATA.items()
    }
    report.rates(effort.turns(commands, report.turn), effort.batch)


def compare_reading(report: Report, effort: Effort) -> None:
    """Adds the showers per second that each side reads, and their ratio."""
    with trial_home() as home:
        shower_set.write(home, effort.images, "full")
        with shower_set.converted_once():
            once = loading.load(shower_set.NAME, home)
        with shower_set.converted_per_epoch():
            per_epoch = loading.load(shower_set.NAME, home)
            sides = [
                ReadingSide(f"reading, {name}", showers, effort.batch, np.random.default_rng(1))
                for name, showers in ((PER_EPOCH, per_epoch), (ONCE, once))
            ]
            turns = alternate(sides, effort.rounds, effort.steps, WARM_UP_STEPS, report.turn)
    report.rates(turns, effort.batch)
    once_turns, per_epoch_turns = (turns[f"reading, {name}"] for name in (ONCE, PER_EPOCH))
    ratios, of_totals = (
        speed_ratios(once_turns, per_epoch_turns),
        speed_ratio_of_totals(once_turns, per_epoch_turns),
    )
    report.spread("figure", FIGURE, spread(ratios), of_totals=of_totals)


def simulated_per_s() -> float:
    """Showers per second at 90° on the full grid, without storing them."""
    random, parts = np.random.default_rng(2), 4
    begin = time.perf_counter()
    for _ in range(parts):
        simulate(np.full(CHUNK, ENERGY_GEV), np.full(CHUNK, np.pi / 2.0), random)
    return parts * CHUNK / (time.perf_counter() - begin)
