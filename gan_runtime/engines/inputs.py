"""What networks see and are asked with, on the host: stored rows as values, the fixed inputs of
sample grids, inputs on request.

Each engine has the formula for values once more, for its devices.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.fields import LABELS, Field, Fields
from gan_runtime.data.contract import DataSet
from gan_runtime.workloads.contract import Options, Workload


def host_values(rows: Mapping[str, NDArray[Any]], fields: Fields) -> dict[str, NDArray[Any]]:
    """Stored rows (rows, *shape) by field → values, in the order of `fields`."""
    return {name: host_value(rows[name], field) for name, field in fields.items()}


def host_value(stored: NDArray[Any], field: Field) -> NDArray[Any]:
    """value = stored · scale + shift, float32; a field that is kept as stored stays as it is."""
    if field.is_as_stored:
        return stored
    return stored.astype(np.float32) * np.float32(field.scale) + np.float32(field.shift)


# ----------------------------------------------------------------------
# What the sample grids ask the generator with: the same in every run of equal options and data,
# whatever its seed.
#
# So the same place in the grids of two runs shows what two generators make of the same latent,
# label or frame. Whether two runs were asked with the same is told by a digest, which stands in the
# record of each picture.

SAMPLES = 64  # an 8 × 8 grid
_SEED = 0


def fixed_inputs(
    workload: Workload, options: Options, data: DataSet, count: int = SAMPLES
) -> dict[str, NDArray[Any]]:
    """`count` rows of inputs by name, on the host; more rows begin with the same ones.

    From NumPy's first generator, whose numbers never change again (NEP 19), and from held-out rows,
    of which there may be fewer than `count`. So grids stay comparable over versions, engines and
    accelerators.
    """
    rows = host_values(data.read_held_out(count), data.fields)
    return workload.fixed_inputs(options, data.fields, rows, np.random.RandomState(_SEED), count)


def digest(inputs: Mapping[str, NDArray[Any]], classes: tuple[str, ...] = ()) -> str:
    """16 hexadecimal digits that tell inputs from others: by names, types, shapes, numbers,
    and what labels are called.
    """
    told = hashlib.sha256(repr(classes).encode())
    for name, array in sorted(inputs.items()):
        told.update(repr((name, array.dtype.str, array.shape)).encode())
        told.update(np.ascontiguousarray(array).tobytes())
    return told.hexdigest()[:16]


def chunks(
    inputs: Mapping[str, NDArray[Any]], rows: int
) -> Iterator[tuple[dict[str, NDArray[Any]], int]]:
    """The inputs in equal pieces of `rows` rows, and how many of them count: the last piece
    is filled up with its last row.
    """
    count = len(next(iter(inputs.values())))
    for begin in range(0, count, rows):
        size = min(rows, count - begin)
        places = np.minimum(np.arange(begin, begin + rows), count - 1)
        yield {name: array[places] for name, array in inputs.items()}, size


# ----------------------------------------------------------------------
# What networks are asked with on request: any number of rows, drawn by a seed, of all classes or of
# one.

MOST_CLASSES = 20  # asked for at once, where no one of them is named


class HostNoise:
    """See `workloads.contract.Noise`: NumPy's numbers, whose stream never changes again (NEP
    19); nothing is dropped out.
    """

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
    workload: Workload,
    options: Options,
    data: DataSet,
    count: int,
    seed: int,
    label: int | None = None,
) -> dict[str, NDArray[Any]]:
    """`count` rows of inputs by name, on the host: what the workload asks with for held-out rows,
    which come again where there are fewer. Labels are those of `labels_of`; the same seed asks for
    all classes with the same latents.
    """
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

    Of more than MOST_CLASSES classes as many, evenly spread; of more classes than rows one row
    each.
    """
    if label is not None:
        return np.full(count, label, np.int32)
    shown = np.linspace(0, classes - 1, min(classes, MOST_CLASSES, count)).round().astype(np.int32)
    return np.sort(shown[np.arange(count) % len(shown)])
