"""A data set of images with a label and an energy each. Needs no framework."""

from __future__ import annotations

import numpy as np

from gan_runtime.base.fields import IMAGES, LABELS, Field, Fields, labels, pictures
from gan_runtime.data.contract import ArraySet

ENERGY = "energy"
FIELDS: Fields = {
    IMAGES: pictures(8, 8, 1),
    LABELS: labels(("up", "down", "strange")),
    ENERGY: Field((), dtype="float32", scale=0.01, shift=-1.0, unit="GeV"),
}


def random_showers(rows: int) -> ArraySet:
    """Images, labels and energies of 0 to 200 GeV; all rows differ."""
    random = np.random.default_rng(2)
    arrays = {
        IMAGES: random.integers(0, 255, (rows, 8, 8, 1), dtype=np.uint8),
        LABELS: random.integers(0, 3, rows, dtype=np.int32),
        ENERGY: random.uniform(0.0, 200.0, rows).astype(np.float32),
    }
    return ArraySet("showers", FIELDS, arrays, "test")
