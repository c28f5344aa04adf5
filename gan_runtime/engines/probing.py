"""What an epoch's look at the networks is, whichever engine takes it."""

from __future__ import annotations

from typing import Any

import numpy as np

from gan_runtime.engines.contract import BinCounts

PROBE_IMAGES = 256
SCORE_BINS = 40
WEIGHT_BINS = 60
SCORE_RANGE = (0.0, 1.0)
UNDECIDED = 0.5  # D's score between "fake" and "real"


def parts(name: str, network: Any) -> dict[str, list[int]]:
    """Where the variables of a network and of each of its layers stand among its trainable ones: "generator/dense" → [0].

    Layers without any are left out.
    """
    order = {id(variable): place for place, variable in enumerate(network.trainable_variables)}
    layers = {f"{name}/{layer.name}": [order[id(one)] for one in layer.trainable_variables] for layer in network.layers}
    return {name: list(order.values()), **{layer: places for layer, places in layers.items() if places}}


def bin_counts(name: str, counts: np.ndarray, low_high: np.ndarray) -> BinCounts:
    """Equal bins from the lowest to the highest value."""
    edges = np.linspace(float(low_high[0]), float(low_high[1]), len(counts) + 1)
    return BinCounts(name, edges, counts.astype(np.int64))
