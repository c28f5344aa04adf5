"""Digits: 1,797 real handwritten digits of 8 × 8 pixels, embedded in scikit-learn, enlarged to 28 × 28.

Source: Alpaydin and Kaynak 1998, UCI Optical Recognition of Handwritten Digits (test part); values 0 to 16.
"""

from __future__ import annotations

import numpy as np
from PIL import Image

from gan_runtime.data.contract import ImageSet

SIDE = 28
MARGIN = 2  # pixels of black around each digit, as MNIST has them, so that strokes are not cut at the border


def load() -> ImageSet:
    """uint8 (1797, 28, 28, 1); bicubic enlargement, so that strokes stay smooth."""
    from sklearn.datasets import load_digits  # imported late: takes a second, and only trainers need it

    small = (load_digits().images * (255.0 / 16.0)).round().astype(np.uint8)
    return ImageSet("digits", np.stack([_enlarge(image) for image in small])[..., None], "embedded in scikit-learn")


def _enlarge(image: np.ndarray) -> np.ndarray:
    inner = SIDE - 2 * MARGIN
    return np.pad(np.asarray(Image.fromarray(image).resize((inner, inner), Image.Resampling.BICUBIC)), MARGIN)
