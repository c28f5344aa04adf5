"""Oscillation of the flow behind an obstacle."""

from __future__ import annotations

from functools import cache

import numpy as np

from gan_runtime.domains.flows import lattice as flow_frames
from gan_runtime.domains.flows import scores
from gan_runtime.domains.flows.lattice import OBSTACLES, Lattice, Shape, Walls

EVERY = 20  # steps between two samples of the probe


@cache
def swing(
    obstacle: Shape, walls: Walls, reynolds: float, until: int, steps: int, kick: float = 0.5
) -> np.ndarray:
    """uy / U at the probe, starting at step `until`."""
    flow = Lattice(reynolds, OBSTACLES[obstacle](), walls=walls, kick=kick)
    flow.advance(until)
    angles = []
    for _ in range(steps // EVERY):
        flow.advance(EVERY)
        angles.append(scores.probe_velocity(flow_frames.of(flow)[None])[0])
    return np.array(angles)
