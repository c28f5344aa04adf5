"""The same noise for both engines, so that their steps can be compared: latents and masks from NumPy, the same in every step."""

from __future__ import annotations

import numpy as np

MOST_ROWS = 64  # of a global batch


def latents(stream: int, columns: int) -> np.ndarray:
    """float32 (64, columns), of which each share of a batch takes its rows."""
    return np.random.RandomState(stream).standard_normal((MOST_ROWS, columns)).astype(np.float32)


def mask(stream: int, shape: tuple[int, ...], rate: float) -> np.ndarray:
    """float32, 0 or 1 / (1 - rate), the same on all replicas."""
    kept = np.random.RandomState(stream).random_sample(shape) >= rate
    return (kept / (1.0 - rate)).astype(np.float32)
