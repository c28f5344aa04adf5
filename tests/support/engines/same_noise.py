"""The same noise for both engines, so that their steps can be compared.

It depends on everything that real noise depends on: draws on seed, step, phase and row of the
global batch, masks on seed, step, phase and share of the batch. NumPy draws it, as tables by step.
"""

from __future__ import annotations

import numpy as np

STEPS = 8  # at most, in a test
MOST_ROWS = 64  # of a global batch
SHARES = 4  # replicas times accumulation steps


def normal(seed: int, stream: int, shape: tuple[int, ...]) -> np.ndarray:
    """float32 (steps, 64, *shape); each share of a batch takes its own rows."""
    return _random(seed, stream).standard_normal((STEPS, MOST_ROWS, *shape)).astype(np.float32)


def uniform(seed: int, stream: int, shape: tuple[int, ...]) -> np.ndarray:
    """Like `normal`, but uniform from 0 to 1."""
    return _random(seed, stream).random_sample((STEPS, MOST_ROWS, *shape)).astype(np.float32)


def mask(seed: int, stream: int, shape: tuple[int, ...], rate: float) -> np.ndarray:
    """uint8 (steps, shares, …): 1 for the units of a layer that dropout keeps."""
    return (_random(seed, stream).random_sample((STEPS, SHARES, *shape)) >= rate).astype(np.uint8)


def _random(seed: int, stream: int) -> np.random.RandomState:
    return np.random.RandomState([seed, stream])
