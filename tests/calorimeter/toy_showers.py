"""Showers of a toy: spots of energy around an inclined line, a gamma distribution deep. Fast, seeded, with faults on request."""

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
    """Cells in GeV (N, X, Y, Z), incident energies in GeV from 20 to 200 (N,), and the angles they were made with, rad (N,).

    `scale`: of all energies. `shift`: of the depth, in layers. `variety`: how much showers differ from their mean; 0: all have the
    same spots.
    """
    random = np.random.RandomState(seed)
    energy = random.uniform(20.0, 200.0, count)
    angle = random.uniform(1.1, 2.0, count)
    own, same = (random.standard_normal((rows, 3, SPOTS)) for rows in (count, 1))
    mixed = np.sqrt(variety) * own + np.sqrt(1.0 - variety) * same  # still normal, spot by spot
    depth = np.exp(0.35 * mixed[:, 2] + np.log(4.0 + 0.4 * np.log(energy[:, np.newaxis] / 20.0))) + shift
    x = shape[0] / 2.0 + 1.3 * mixed[:, 0]
    y = shape[1] / 2.0 + 1.3 * mixed[:, 1] + (depth - 4.5) * np.tan(np.pi / 2.0 - angle[:, np.newaxis]) / 1.5
    places = np.stack([x, y, depth], axis=0).astype(int)  # (3, N, SPOTS)
    inside = ((places >= 0) & (places < np.reshape(shape, (3, 1, 1)))).all(axis=0)
    cells = np.zeros((count, *shape), np.float32)
    visible = scale * 0.02 * energy * (1.0 + 0.05 * random.standard_normal(count))
    spot_gev = np.repeat(visible[:, np.newaxis] / SPOTS, SPOTS, axis=1)
    rows = np.repeat(np.arange(count)[:, np.newaxis], SPOTS, axis=1)
    np.add.at(cells, (rows[inside], *(place[inside] for place in places)), spot_gev[inside])
    return cells, energy, angle
