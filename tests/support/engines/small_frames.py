"""Frames of a few pixels, as flow data and as image pairs. Needs no framework."""

from __future__ import annotations

import numpy as np

from gan_runtime.base.fields import SOURCE, TARGET, pair_fields
from gan_runtime.data.contract import ArraySet
from gan_runtime.domains.flows.fields import (
    LATER,
    LATTICE_STEP,
    OBSTACLE_SHIFT,
    OBSTACLE_WIDTH,
    REYNOLDS,
    flow_fields,
)


def small_flows(rows: int, height: int = 16, width: int = 20, later: int = 0) -> ArraySet:
    """Waves that move with the stream, past an obstacle in the upper left; each target is the next
    frame.
    """
    random = np.random.default_rng(4)
    phases, slopes = random.uniform(0.0, 6.0, (2, rows, 1, 1))
    down, across = np.mgrid[:height, :width] / 8.0

    def frame(time: int) -> np.ndarray:
        waves = [
            np.sin((place + 1.0) * (across - 0.2 * time) + slopes * down + phases)
            for place in range(3)
        ]
        return (0.8 * np.stack(waves, axis=-1)).astype(np.float16)

    obstacle = np.zeros((rows, height, width, 1), np.float16)
    obstacle[:, 2:6, 2:6] = 1.0
    arrays = {
        SOURCE: np.concatenate([frame(0), obstacle], axis=-1),
        TARGET: frame(1),
        REYNOLDS: random.choice([80.0, 100.0], rows).astype(np.float32),
        LATTICE_STEP: np.arange(rows, dtype=np.int32),
        OBSTACLE_WIDTH: np.full(rows, 10.0, np.float32),
        OBSTACLE_SHIFT: np.zeros(rows, np.float32),
    }
    if later:
        arrays[LATER] = np.stack([frame(time) for time in range(2, 2 + later)], axis=1)
    return ArraySet("flow", flow_fields(height, width, later), arrays, "test")


def small_pairs(rows: int, pixels: int = 16, channels: tuple[int, int] = (3, 3)) -> ArraySet:
    """Random images; the targets are the sources upside down, averaged over their colors."""
    random = np.random.default_rng(4)
    source = random.integers(0, 255, (rows, pixels, pixels, channels[0]), dtype=np.uint8)
    target = np.resize(
        source[:, ::-1].mean(axis=-1, keepdims=True), (rows, pixels, pixels, channels[1])
    )
    arrays = {SOURCE: source, TARGET: target.astype(np.uint8)}
    return ArraySet("pairs", pair_fields(pixels, pixels, *channels), arrays, "test")
