"""The probe of the networks after an epoch: what both engines share."""

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
MOST_CLASSES = 20  # with a mean each, over about a dozen of PROBE_ROWS
LONGEST_CLASS = 100  # letters of a folder's name; the name of a number may have 200
# By name: int (bins,), and the lowest and highest value, float (2,), not finite where a value is
# not.
Counts = Mapping[str, tuple[np.ndarray, np.ndarray]]


def gradient_names(program: Program, phase: Phase, network: str) -> tuple[str, str]:
    """Names of a network's gradient in a phase: the kind of its histograms, the metric of its norm.

    ("gradient", "gradient_norm_critic") where one phase changes the network, ("gradient@first",
    "gradient_norm_critic@first") where several do.
    """
    at = f"{metrics.OF_PHASE}{phase.name}" if program.updates_of(network) > 1 else ""
    return f"{metrics.GRADIENT}{at}", f"{metrics.of_network(metrics.GRADIENT_NORM, network)}{at}"


def score_range(entry: WorkloadEntry, name: str) -> tuple[float, float] | None:
    """Lowest and highest possible value of a score; None where its bins follow the values."""
    for judgement in entry.judgements:
        if judgement.name == name and judgement.low is not None and judgement.high is not None:
            return judgement.low, judgement.high
    return None


def probe_rows_per_replica(rows: int, replicas: int) -> int:
    """Rows of the probe batch on each replica, at most PROBE_ROWS in all. `rows`: of the set."""
    return max(1, min(PROBE_ROWS, rows) // replicas)


@dataclass(frozen=True)
class ProbeClasses:
    """The classes of the rows of the probe batch.

    `labels`: int (rows,), the index of each row's class in `names`. `names` is empty where there
    are no means by class: without labels, with one class, and with more than MOST_CLASSES.
    """

    names: tuple[str, ...]
    labels: NDArray[Any]

    @classmethod
    def of(cls, fields: Fields, rows: Mapping[str, NDArray[Any]]) -> ProbeClasses:
        """`rows`: of all replicas."""
        names = tuple(_short(name, number) for number, name in enumerate(class_names(fields)))
        return (
            cls(names, rows[LABELS])
            if 2 <= len(names) <= MOST_CLASSES
            else cls((), np.empty(0, int))
        )

    def means(self, judged: Mapping[str, NDArray[Any]]) -> dict[str, float]:
        """The mean of each score, (rows,), over the rows of each class, by its stored name.

        A class without a row in the probe batch is left out.
        """
        return {
            metrics.of_class(name, self.names[number]): float(
                values[self.labels == number].mean(dtype=np.float64)
            )
            for name, values in judged.items()
            for number in np.unique(self.labels)
        }


def _short(name: str, number: int) -> str:
    """A cut name has its number: long names may begin alike."""
    return name if len(name) <= LONGEST_CLASS else f"{name[:LONGEST_CLASS]}… ({number})"


def variables_by_layer(name: str, network: Any) -> dict[str, list[int]]:
    """Network, and each layer with trainable variables → their indices among those of the network:
    "critic/dense" → [0].
    """
    order = {id(variable): place for place, variable in enumerate(network.trainable_variables)}
    places = {name: list(order.values())} | {
        f"{name}/{layer.name}": [order[id(variable)] for variable in layer.trainable_variables]
        for layer in network.layers
    }
    return {part: variables for part, variables in places.items() if variables}


def probe_result(histograms: Counts, scores: Mapping[str, Any], loss_scaled: bool) -> ProbeResult:
    """The result of a probe, by name.

    A histogram of values that are not all finite has no bins and is left out.

    `loss_scaled`: a gradient of the probe may overflow under a loss scale, as in a step that
    float16 skips. That says nothing about the weights, so its norm is left out. Every other number
    that is not finite stays, and raises an alarm.
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
