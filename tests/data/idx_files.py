"""File names of IDX files, and images to write into them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

WriteIdx = Callable[[Path, np.ndarray], Path]
TRAIN, TEST = "train-images-idx3-ubyte", "t10k-images-idx3-ubyte"
TRAIN_LABELS, TEST_LABELS = "train-labels-idx1-ubyte", "t10k-labels-idx1-ubyte"


def pictures(count: int, side: int = 28) -> np.ndarray:
    """uint8 (count, side, side); image i holds i·10 everywhere, and 255 in its first pixel."""
    images = np.repeat(np.arange(count, dtype=np.uint8) * 10, side * side).reshape(
        count, side, side
    )
    images[:, 0, 0] = 255
    return images


def noise(count: int) -> np.ndarray:
    """uint8 (count, 28, 28) that does not compress."""
    return np.random.default_rng(1).integers(0, 256, (count, 28, 28), dtype=np.uint8)
