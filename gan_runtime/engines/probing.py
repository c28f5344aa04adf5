"""What an epoch's look at the networks is, whichever engine takes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gan_runtime.engines.contract import BinCounts, ProbeResult

PROBE_IMAGES = 256
SCORE_BINS = 40
WEIGHT_BINS = 60
SCORE_RANGE = (0.0, 1.0)
UNDECIDED = 0.5  # D's score between "fake" and "real"
NORM = "gradient_norm_"  # of a network, by its name
Counts = Mapping[
    str, tuple[np.ndarray, np.ndarray]
]  # by name: int (bins,), and the lowest and highest value, float (2,)


def parts(name: str, network: Any) -> dict[str, list[int]]:
    """Where the variables of a network and of each of its layers stand among its trainable ones: "generator/dense" → [0].

    Layers without any are left out.
    """
    order = {id(variable): place for place, variable in enumerate(network.trainable_variables)}
    layers = {
        f"{name}/{layer.name}": [order[id(one)] for one in layer.trainable_variables]
        for layer in network.layers
    }
    return {name: list(order.values()), **{layer: places for layer, places in layers.items() if places}}


def probed(histograms: Counts, scores: Mapping[str, Any], loss_scaled: bool) -> ProbeResult:
    """What a probe tells, by name. Histograms of values that are not all finite are left out: they have no bins.

    `loss_scaled`: a gradient of the probe may overflow under a loss scale, as in a step that float16 skips. That says nothing
    of the weights, so its norm is left out. Every other number that is not finite stays, and is an alarm.
    """
    numbers = {name: float(scores[name]) for name in sorted(scores)}
    drawn = [
        _bin_counts(name, *histograms[name])
        for name in sorted(histograms)
        if _has_bins(name, histograms, numbers)
    ]
    told = {
        name: value
        for name, value in numbers.items()
        if np.isfinite(value) or not (loss_scaled and name.startswith(NORM))
    }
    return ProbeResult(drawn, told)


def _has_bins(name: str, histograms: Counts, numbers: Mapping[str, float]) -> bool:
    """Scores have fixed bins, in the first of which a NaN would be counted; their mean tells of it."""
    mean = numbers.get(f"probe_{name.replace('/', '_')}", 0.0)
    return bool(np.isfinite(histograms[name][1]).all() and np.isfinite(mean))


def _bin_counts(name: str, counts: np.ndarray, low_high: np.ndarray) -> BinCounts:
    """Equal bins from the lowest to the highest value."""
    edges = np.linspace(float(low_high[0]), float(low_high[1]), len(counts) + 1)
    return BinCounts(name, edges, counts.astype(np.int64))
