"""Parts of the probe after an epoch that both engines share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base import metrics
from gan_runtime.base.fields import LABELS, Fields, class_names
from gan_runtime.catalog import WorkloadEntry
from gan_runtime.engines.contract import BinCounts, ProbeResult
from gan_runtime.workloads.contract import Phase, Program

PROBE_ROWS = 256
SCORE_BINS = 40
WEIGHT_BINS = 60
MOST_CLASSES = 20  # classes with means, each over about a dozen of PROBE_ROWS
LONGEST_CLASS = 100  # characters of a folder's name; a metric's name can have 200
# Name → counts int (bins,) and the lowest and highest value, float (2,), which are not finite if a
# value is not.
Counts = Mapping[str, tuple[np.ndarray, np.ndarray]]


def gradient_names(program: Program, phase: Phase, network: str) -> tuple[str, str]:
    """The names for a network's gradient in a phase: the kind of its histograms, and the metric of
    its norm.

    ("gradient", "gradient_norm_critic") where one phase changes the network, ("gradient@first",
    "gradient_norm_critic@first") where several do.
    """
    at = f"{metrics.OF_PHASE}{phase.name}" if program.updates_of(network) > 1 else ""
    return f"{metrics.GRADIENT}{at}", f"{metrics.of_network(metrics.GRADIENT_NORM, network)}{at}"


def score_range(entry: WorkloadEntry, name: str) -> tuple[float, float] | None:
    """The lowest and highest possible value of a score; None if its bins follow the values."""
    for judgement in entry.judgements:
        if judgement.name == name and judgement.low is not None and judgement.high is not None:
            return judgement.low, judgement.high
    return None


def probe_rows_per_replica(rows: int, replicas: int) -> int:
    """The rows of the probe batch on each replica, at most PROBE_ROWS in total. `rows`: rows of the
    set.
    """
    return max(1, min(PROBE_ROWS, rows) // replicas)


@dataclass(frozen=True)
class ProbeClasses:
    """The classes of the rows of the probe batch.

    `labels`: int (rows,), the index of each row's class in `names`. `names` is empty if there are
    no means by class: without labels, with one class, or with more than MOST_CLASSES.
    """

    names: tuple[str, ...]
    labels: NDArray[Any]

    @classmethod
    def of(cls, fields: Fields, rows: Mapping[str, NDArray[Any]]) -> ProbeClasses:
        """The classes of these rows. `rows`: of all replicas."""
        names = tuple(_short(name, number) for number, name in enumerate(class_names(fields)))
        return (
            cls(names, rows[LABELS])
            if 2 <= len(names) <= MOST_CLASSES
            else cls((), np.empty(0, int))
        )

    def means(self, judged: Mapping[str, NDArray[Any]]) -> dict[str, float]:
        """The mean of each score, (rows,), over the rows of each class, by its stored name.

        Classes without a row in the probe batch are left out.
        """
        return {
            metrics.of_class(name, self.names[number]): float(
                values[self.labels == number].mean(dtype=np.float64)
            )
            for name, values in judged.items()
            for number in np.unique(self.labels)
        }


def _short(name: str, number: int) -> str:
    """Shortens a name, and appends its number, since long names can begin alike."""
    return name if len(name) <= LONGEST_CLASS else f"{name[:LONGEST_CLASS]}… ({number})"


def variables_by_layer(name: str, network: Any) -> dict[str, list[int]]:
    """Maps the network and each layer with trainable variables to the indices of these variables in
    the network: "critic/dense" → [0].
    """
    order = {id(variable): place for place, variable in enumerate(network.trainable_variables)}
    places = {name: list(order.values())} | {
        f"{name}/{layer.name}": [order[id(variable)] for variable in layer.trainable_variables]
        for layer in network.layers
    }
    return {part: variables for part, variables in places.items() if variables}


def probe_result(histograms: Counts, scores: Mapping[str, Any], loss_scaled: bool) -> ProbeResult:
    """The result of a probe, by name.

    Histograms with non-finite values have no bins and are left out.

    `loss_scaled`: a gradient of the probe can overflow under a loss scale, as in a step that
    float16 skips. That says nothing about the weights, so its norm is left out. Any other
    non-finite number is included, and raises an alarm.
    """
    numbers = {name: float(scores[name]) for name in sorted(scores)}
    finite = [
        _bin_counts(name, *histograms[name])
        for name in sorted(histograms)
        if np.isfinite(histograms[name][1]).all()
    ]
    norm = metrics.of_network(metrics.GRADIENT_NORM, "")
    stored = {
        name: value
        for name, value in numbers.items()
        if np.isfinite(value) or not (loss_scaled and name.startswith(norm))
    }
    return ProbeResult(finite, stored)


def _bin_counts(name: str, counts: np.ndarray, low_high: np.ndarray) -> BinCounts:
    """Equal bins from the lowest to the highest value."""
    edges = np.linspace(float(low_high[0]), float(low_high[1]), len(counts) + 1)
    return BinCounts(name, edges, counts.astype(np.int64))
