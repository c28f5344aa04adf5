"""Stacked digits: three embedded digits as red, green and blue; 1,000 modes, each known by its label.

A generator that has lost modes can be counted. Source: Metz et al. 2017, arXiv:1611.02163, section 3.3.1, and
Srivastava et al. 2017, arXiv:1705.07761, section 4.2, who stack MNIST; here scikit-learn's digits, so that
nothing is downloaded.
"""

from __future__ import annotations

import numpy as np

from gan_runtime import catalog
from gan_runtime.base.fields import IMAGES, LABELS
from gan_runtime.data import digits
from gan_runtime.data.contract import ArraySet, picture_set

ROWS = 20_000
HELD_OUT = 2_000
SEED = 0  # the same rows on every machine
CLASSES = catalog.DATASETS["stacked_digits"].fields[LABELS].classes  # red, green and blue digit


def load() -> ArraySet:
    """Pictures uint8 (20000, 28, 28, 3); label 123 is a red 1, a green 2 and a blue 3. 2,000 are held out."""
    single = digits.load()
    images, numbers = single.resident[IMAGES][..., 0], single.resident[LABELS]
    chosen = np.random.RandomState(SEED).randint(len(images), size=(ROWS + HELD_OUT, 3))
    stacked = np.ascontiguousarray(images[chosen].transpose(0, 2, 3, 1))  # (N, 3, 28, 28) → (N, 28, 28, 3)
    labels = (numbers[chosen] @ np.array([100, 10, 1])).astype(np.int32)
    return picture_set(
        "stacked_digits",
        stacked[:ROWS],
        digits.ORIGIN,
        labels=labels[:ROWS],
        classes=CLASSES,
        kept_back={IMAGES: stacked[ROWS:], LABELS: labels[ROWS:]},
    )
