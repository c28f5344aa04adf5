"""What networks are asked with on request: any number of rows, drawn by a seed, of all classes or of one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.fields import LABELS, Fields
from gan_runtime.data.contract import DataSet
from gan_runtime.engines.values import host_values
from gan_runtime.workloads.contract import Options, Workload

MOST_CLASSES = 20  # asked for at once, where no one of them is named


class HostNoise:
    """See `workloads.contract.Noise`: NumPy's numbers, whose stream never changes again (NEP 19); nothing is dropped out."""

    def __init__(self, seed: int) -> None:
        self._seed, self._streams = seed, 0

    def normal(self, rows: int, *shape: int) -> NDArray[np.float32]:
        """float32 (rows, *shape), standard normal. More rows begin with the same ones."""
        return self._stream().standard_normal((rows, *shape)).astype(np.float32)

    def uniform(self, rows: int, *shape: int) -> NDArray[np.float32]:
        """float32 (rows, *shape), from 0 to 1. More rows begin with the same ones."""
        return self._stream().random_sample((rows, *shape)).astype(np.float32)

    def dropout(self, values: Any, rate: float) -> Any:  # noqa: ARG002
        """`values` as they are."""
        return values

    def _stream(self) -> np.random.RandomState:
        self._streams += 1
        return np.random.RandomState([self._seed, self._streams])


def drawn_inputs(
    workload: Workload, options: Options, data: DataSet, count: int, seed: int, label: int | None = None
) -> dict[str, NDArray[Any]]:
    """`count` rows of inputs by name, on the host: what the workload asks with for held-out rows, which come again where there are
    fewer. Labels are those of `labels_of`; the same seed asks for all classes with the same latents."""
    rows = host_values(data.read_held_out(count), data.fields)
    places = np.arange(count) % len(next(iter(rows.values())))
    asked = {name: values[places] for name, values in rows.items()}
    if LABELS in asked:
        asked[LABELS] = labels_of(count, len(data.fields[LABELS].classes), label)
    return inputs_of(workload, options, data.fields, asked, seed)


def inputs_of(
    workload: Workload, options: Options, fields: Fields, rows: dict[str, NDArray[Any]], seed: int
) -> dict[str, NDArray[Any]]:
    """What the workload asks with for these rows, values by field, and this seed."""
    inputs = workload.inputs(options, fields, rows, HostNoise(seed))
    return {name: np.asarray(values) for name, values in inputs.items()}


def labels_of(count: int, classes: int, label: int | None = None) -> NDArray[np.int32]:
    """int32 (count,): all `label`, or without one equally many of each class, in their order.

    Of more than MOST_CLASSES classes as many, evenly spread; of more classes than rows one row each.
    """
    if label is not None:
        return np.full(count, label, np.int32)
    shown = np.linspace(0, classes - 1, min(classes, MOST_CLASSES, count)).round().astype(np.int32)
    return np.sort(shown[np.arange(count) % len(shown)])
