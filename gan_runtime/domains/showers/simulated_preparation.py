"""The preparation `showers`: simulated electrons become a data set."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gan_runtime.data.contract import Progress
from gan_runtime.data.prepared import Stored
from gan_runtime.data.sharded import RowWriter
from gan_runtime.data.summary import Summary
from gan_runtime.domains.showers import simulation
from gan_runtime.domains.showers.cell_values import shower_fields
from gan_runtime.domains.showers.conversion_tally import Tally
from gan_runtime.domains.showers.detector import Numbers
from gan_runtime.domains.showers.preparation_options import ShowerOptions, held_out
from gan_runtime.domains.showers.rows import rows_of
from gan_runtime.domains.showers.simulation import Floats

# Simulated together, with random numbers of their own: the first showers are the same, however many are asked for.
AT_ONCE = 32
GRIDS = {"full": simulation.FULL, "tiny": simulation.TINY}


def prepare(_source: None, options: ShowerOptions, folder: Path, progress: Progress) -> Stored:
    """Writes the showers into the existing, empty `folder`. Raises HomeError: the disk has too little space."""
    fields, tally = shower_fields((*GRIDS[options.grid].shape, 1)), Tally()
    with RowWriter(folder, fields, options.events, f"a data set of {options.events:,} showers") as writer:
        for begin in range(0, options.events, AT_ONCE):
            progress(begin, options.events, f"Simulating {begin:,} of {options.events:,} showers")
            cells_gev, energies = simulated(options, begin // AT_ONCE, min(AT_ONCE, options.events - begin))
            tally.add(cells_gev, energies)
            writer.append(rows_of(cells_gev, energies))
    summary = Summary(held_out=held_out(options), quantities=tally.quantities(), curve=tally.profile())
    return Stored(fields, writer.shards, summary)


def simulated(options: ShowerOptions, part: int, count: int) -> tuple[Floats, Numbers]:
    """The first `count` of the showers with number 32 · part and above: cells (count, X, Y, Z) and incident energies (count,), both in GeV."""
    random = np.random.default_rng((options.seed, part))
    energies = random.uniform(options.energy_low, options.energy_high, AT_ONCE)
    angles = np.radians(random.uniform(options.angle_low, options.angle_high, AT_ONCE))
    cells_gev = simulation.simulate(energies, angles, random, GRIDS[options.grid])
    return cells_gev[:count], energies[:count]
