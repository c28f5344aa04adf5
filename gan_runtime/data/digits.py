"""Digits: 1,797 real handwritten digits of 8 × 8 pixels, embedded in scikit-learn, enlarged to 28 ×
28.

Source: Alpaydin and Kaynak 1998, UCI Optical Recognition of Handwritten Digits (test part); values
0 to 16. All are trained on.

Stacked digits: three of them as red, green and blue; 1,000 modes, each known by its label, so that
a generator that has lost modes can be counted. Source: Metz et al. 2017, arXiv:1611.02163, section
3.3.1, and Srivastava et al. 2017, arXiv:1705.07761, section 4.2, who stack MNIST; here
scikit-learn's digits, so that nothing is downloaded.
"""

from __future__ import annotations

import importlib.metadata

import numpy as np
from PIL import Image

from gan_runtime import catalog
from gan_runtime.base.fields import IMAGES, LABELS
from gan_runtime.data.contract import ArraySet, picture_set

FILE = "digits.csv.gz"  # of scikit-learn: 64 pixels and the digit in each row
SIDE = 28
# pixels of black around each digit, as MNIST has them, so that strokes are not cut at the border
MARGIN = 2
CLASSES = tuple("0123456789")
STACKED_ROWS, STACKED_HELD_OUT = 20_000, 2_000
STACKED_SEED = 0  # the same rows on every machine
ORIGIN = "embedded in scikit-learn"


def load() -> ArraySet:
    """Pictures uint8 (1797, 28, 28, 1) and labels; bicubic enlargement, so that strokes stay
    smooth.

    Reads the file alone: importing scikit-learn takes a second.
    """
    (file,) = (path for path in importlib.metadata.files("scikit-learn") or () if path.name == FILE)
    table = np.loadtxt(file.locate(), delimiter=",")  # (1797, 65)
    small = (table[:, :-1].reshape(-1, 8, 8) * (255.0 / 16.0)).round().astype(np.uint8)
    images = np.stack([_enlarge(image) for image in small])[..., None]
    return picture_set("digits", images, ORIGIN, labels=table[:, -1], classes=CLASSES)


def _enlarge(image: np.ndarray) -> np.ndarray:
    inner = SIDE - 2 * MARGIN
    return np.pad(
        np.asarray(Image.fromarray(image).resize((inner, inner), Image.Resampling.BICUBIC)), MARGIN
    )


def load_stacked() -> ArraySet:
    """Pictures uint8 (20000, 28, 28, 3); label 123 is a red 1, a green 2 and a blue 3.

    2,000 are held out.
    """
    single = load()
    images, numbers = single.resident[IMAGES][..., 0], single.resident[LABELS]
    count = STACKED_ROWS + STACKED_HELD_OUT
    chosen = np.random.RandomState(STACKED_SEED).randint(len(images), size=(count, 3))
    stacked = np.ascontiguousarray(
        images[chosen].transpose(0, 2, 3, 1)
    )  # (N, 3, 28, 28) → (N, 28, 28, 3)
    labels = (numbers[chosen] @ np.array([100, 10, 1])).astype(np.int32)
    return picture_set(
        "stacked_digits",
        stacked[:STACKED_ROWS],
        ORIGIN,
        labels=labels[:STACKED_ROWS],
        classes=catalog.DATASETS["stacked_digits"]
        .fields[LABELS]
        .classes,  # red, green and blue digit
        kept_back={IMAGES: stacked[STACKED_ROWS:], LABELS: labels[STACKED_ROWS:]},
    )
