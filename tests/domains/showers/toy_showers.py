"""Toy showers: energy spots around an inclined line or a beam axis, with log-normal or
gamma-distributed depths.

Fast and seeded, with optional faults.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SHAPE = (11, 11, 12)
SPOTS = 200


def toy_showers(
    count: int,
    seed: int = 0,
    *,
    scale: float = 1.0,
    shift: float = 0.0,
    variety: float = 1.0,
    shape: tuple[int, int, int] = SHAPE,
) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.float64]]:
    """Cells in GeV (N, X, Y, Z), incident energies in GeV from 20 to 200 (N,), and true angles in
    rad (N,).

    `scale`: of all energies. `shift`: of the depth, in layers. `variety`: how much showers differ
    from their mean; at 0 all have the same spots.
    """
    random = np.random.RandomState(seed)
    energy = random.uniform(20.0, 200.0, count)
    angle = random.uniform(1.1, 2.0, count)
    spread, same = (random.standard_normal((rows, 3, SPOTS)) for rows in (count, 1))
    mixed = np.sqrt(variety) * spread + np.sqrt(1.0 - variety) * same  # still normal for each spot
    depth = (
        np.exp(0.35 * mixed[:, 2] + np.log(4.0 + 0.4 * np.log(energy[:, np.newaxis] / 20.0)))
        + shift
    )
    x = shape[0] / 2.0 + 1.3 * mixed[:, 0]
    y = (
        shape[1] / 2.0
        + 1.3 * mixed[:, 1]
        + (depth - 4.5) * np.tan(np.pi / 2.0 - angle[:, np.newaxis]) / 1.5
    )
    places = np.stack([x, y, depth], axis=0).astype(int)  # (3, N, SPOTS)
    inside = ((places >= 0) & (places < np.reshape(shape, (3, 1, 1)))).all(axis=0)
    cells = np.zeros((count, *shape), np.float32)
    visible = scale * 0.02 * energy * (1.0 + 0.05 * random.standard_normal(count))
    spot_gev = np.repeat(visible[:, np.newaxis] / SPOTS, SPOTS, axis=1)
    rows = np.repeat(np.arange(count)[:, np.newaxis], SPOTS, axis=1)
    np.add.at(cells, (rows[inside], *(place[inside] for place in places)), spot_gev[inside])
    return cells, energy, angle


ANGLES, RADII, LAYERS = 16, 9, 45  # of data set 2 of the CaloChallenge


def beam_showers(
    count: int, seed: int = 0, *, scale: float = 1.0, shift: float = 0.0, layers: int = LAYERS
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Cells in GeV (N, 16, 9, layers) and incident energies of 1 to 1,000 GeV (N,).

    Faint showers leave the last layers empty, and some cells are below the readout threshold.
    `scale`: of the cells. `shift`: of the depth, in layers of 45.
    """
    random = np.random.RandomState(seed)
    energy = 10.0 ** random.uniform(0.0, 3.0, count)
    spots = np.minimum(60.0 * energy**0.5, 1_500.0).astype(int)
    rows = np.repeat(np.arange(count), spots)
    peak = (6.0 + 2.0 * np.log(energy)) * random.lognormal(0.0, 0.12, count)
    depth = random.gamma(4.0, peak[rows] / 3.0) + shift
    radius = random.exponential(0.6 + 0.02 * depth) + random.exponential(0.3, len(rows))
    alpha = random.randint(0, ANGLES, len(rows))
    visible = scale * 0.9 * energy * random.lognormal(0.0, 0.05, count)
    gev = random.gamma(0.4, 1.0 / 0.4, len(rows)) * (visible / spots)[rows]
    layer = (depth * layers / LAYERS).astype(int)
    inside = (radius < RADII) & (depth >= 0.0) & (layer < layers)
    cells = np.zeros((count, ANGLES, RADII, layers), np.float32)
    np.add.at(
        cells,
        tuple(place[inside] for place in (rows, alpha, radius.astype(int), layer)),
        gev[inside],
    )
    return cells, energy
