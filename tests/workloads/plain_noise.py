"""Random numbers for a step without an engine."""

from __future__ import annotations

from typing import Any

import numpy as np


class PlainNoise:
    """NumPy draws, and a dropout that keeps every second unit."""

    def __init__(self) -> None:
        self._draws = np.random.default_rng(1)

    def normal(self, rows: int, *shape: int) -> np.ndarray:
        return self._draws.standard_normal((rows, *shape), np.float32)

    def uniform(self, rows: int, *shape: int) -> np.ndarray:
        return self._draws.random((rows, *shape), np.float32)

    def dropout(self, values: Any, rate: float) -> Any:
        size = int(np.prod(values.shape))
        mask = np.tile([0.0, 2.0], size // 2 + 1)[:size].reshape(values.shape).astype(np.float32)
        return values * mask * (rate > 0)
