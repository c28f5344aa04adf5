"""Digits: 1,797 real handwritten digits of 8 × 8 pixels, embedded in scikit-learn, enlarged to 28 × 28.

Source: Alpaydin and Kaynak 1998, UCI Optical Recognition of Handwritten Digits (test part); values 0 to 16.
All are trained on.
"""

from __future__ import annotations

import importlib.metadata

import numpy as np
from PIL import Image

from gan_runtime.data.contract import ArraySet, picture_set

FILE = "digits.csv.gz"  # of scikit-learn: 64 pixels and the digit in each row
SIDE = 28
MARGIN = 2  # pixels of black around each digit, as MNIST has them, so that strokes are not cut at the border
CLASSES = tuple("0123456789")
ORIGIN = "embedded in scikit-learn"


def load() -> ArraySet:
    """Pictures uint8 (1797, 28, 28, 1) and labels; bicubic enlargement, so that strokes stay smooth.

    Reads the file alone: importing scikit-learn takes a second.
    """
    (file,) = (path for path in importlib.metadata.files("scikit-learn") or () if path.name == FILE)
    table = np.loadtxt(file.locate(), delimiter=",")  # (1797, 65)
    small = (table[:, :-1].reshape(-1, 8, 8) * (255.0 / 16.0)).round().astype(np.uint8)
    images = np.stack([_enlarge(image) for image in small])[..., None]
    return picture_set("digits", images, ORIGIN, labels=table[:, -1], classes=CLASSES)


def _enlarge(image: np.ndarray) -> np.ndarray:
    inner = SIDE - 2 * MARGIN
    return np.pad(np.asarray(Image.fromarray(image).resize((inner, inner), Image.Resampling.BICUBIC)), MARGIN)
