"""Inputs of the networks, on the host: stored rows as values, fixed inputs of sample grids, inputs
on request, and the order of the training rows.

The formula for values has a copy on the devices (tf/inputs.py); JAX calls this one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.fields import LABELS, Field, Fields
from gan_runtime.data.contract import DataSet
from gan_runtime.engines.task import StepPlan
from gan_runtime.workloads.contract import Noise, Options, Workload


def host_values(rows: Mapping[str, NDArray[Any]], fields: Fields) -> dict[str, NDArray[Any]]:
    """Converts stored rows (rows, *shape) by field into values, in the order of `fields`."""
    return {name: host_value(rows[name], field) for name, field in fields.items()}


def host_value(stored: NDArray[Any], field: Field) -> NDArray[Any]:
    """value = stored · scale + shift, float32; a field used as stored stays unchanged."""
    if field.is_as_stored:
        return stored
    return stored.astype(np.float32) * np.float32(field.scale) + np.float32(field.shift)


# ----------------------------------------------------------------------
# Inputs of the sample grids: the same in every run of equal options and data, whatever its seed.
#
# So a cell of the grids of two runs shows the output of two generators for the same latent, label
# or frame. The record of each image has a digest of its inputs, for comparison.

SAMPLES = 64  # an 8 × 8 grid
_SEED = 0


def fixed_inputs(
    workload: Workload, options: Options, data: DataSet, count: int = SAMPLES
) -> dict[str, NDArray[Any]]:
    """`count` rows of inputs by name, on the host. A larger `count` begins with the same rows.

    They come from NumPy's RandomState, whose stream never changes (NEP 19), and from held-out rows,
    possibly fewer than `count`. So grids are comparable across versions, engines and accelerators.
    """
    rows = host_values(data.read_held_out(count), data.fields)
    return workload.fixed_inputs(options, data.fields, rows, np.random.RandomState(_SEED), count)


def digest(inputs: Mapping[str, NDArray[Any]], classes: tuple[str, ...] = ()) -> str:
    """16 hexadecimal digits of the inputs' names, types, shapes and numbers, and of class names."""
    hashed = hashlib.sha256(repr(classes).encode())
    for name, array in sorted(inputs.items()):
        hashed.update(repr((name, array.dtype.str, array.shape)).encode())
        hashed.update(np.ascontiguousarray(array).tobytes())
    return hashed.hexdigest()[:16]


def chunks(
    inputs: Mapping[str, NDArray[Any]], rows: int
) -> Iterator[tuple[dict[str, NDArray[Any]], int]]:
    """The inputs in equal chunks of `rows` rows, each with its number of valid rows; the last chunk
    is padded with its last row.
    """
    count = len(next(iter(inputs.values())))
    for begin in range(0, count, rows):
        size = min(rows, count - begin)
        places = np.minimum(np.arange(begin, begin + rows), count - 1)
        yield {name: array[places] for name, array in inputs.items()}, size


# ----------------------------------------------------------------------
# Inputs on request: any number of rows, drawn by a seed, of all classes or of one.

MOST_CLASSES = 20  # in a request without a class


class HostNoise:
    """A `workloads.contract.Noise` from NumPy's RandomState, whose stream never changes (NEP 19);
    dropout changes nothing.
    """

    def __init__(self, seed: int, streams: int = 0) -> None:
        """`streams`: number of streams already used."""
        self._seed, self._streams = seed, streams

    def normal(self, rows: int, *shape: int) -> NDArray[np.float32]:
        """float32 (rows, *shape), standard normal. A larger number of rows begins with the same
        rows.
        """
        return self._stream().standard_normal((rows, *shape)).astype(np.float32)

    def uniform(self, rows: int, *shape: int) -> NDArray[np.float32]:
        """float32 (rows, *shape), from 0 to 1. A larger number of rows begins with the
        same rows.
        """
        return self._stream().random_sample((rows, *shape)).astype(np.float32)

    def dropout(self, values: Any, rate: float) -> Any:  # noqa: ARG002
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
    """`count` rows of inputs by name, on the host: the workload's inputs for held-out rows, which
    repeat if there are fewer. Labels come from `labels_of`; a seed gives every class the same
    latents.
    """
    rows = held_out_rows(data, count, label)
    return inputs_of(workload, options, data.fields, rows, HostNoise(seed))


def held_out_rows(data: DataSet, count: int, label: int | None = None) -> dict[str, NDArray[Any]]:
    """`count` held-out rows as values by field, repeated if there are fewer; labels come from
    `labels_of`.
    """
    rows = host_values(data.read_held_out(count), data.fields)
    places = np.arange(count) % len(next(iter(rows.values())))
    repeated = {name: values[places] for name, values in rows.items()}
    if LABELS in repeated:
        repeated[LABELS] = labels_of(count, len(data.fields[LABELS].classes), label)
    return repeated


def inputs_of(
    workload: Workload,
    options: Options,
    fields: Fields,
    rows: dict[str, NDArray[Any]],
    noise: Noise,
) -> dict[str, NDArray[Any]]:
    """The workload's inputs for these rows (values by field), with NumPy noise."""
    inputs = workload.inputs(options, fields, rows, noise)
    return {name: np.asarray(values) for name, values in inputs.items()}


def labels_of(count: int, classes: int, label: int | None = None) -> NDArray[np.int32]:
    """int32 (count,): all equal to `label`, or without it equally many of each class, in order.

    With more than MOST_CLASSES classes, only MOST_CLASSES evenly spread ones; with more classes
    than rows, one row each.
    """
    if label is not None:
        return np.full(count, label, np.int32)
    evenly = np.linspace(0, classes - 1, min(classes, MOST_CLASSES, count)).round().astype(np.int32)
    return np.sort(evenly[np.arange(count) % len(evenly)])


# ----------------------------------------------------------------------
# The order of the training rows in each epoch, without TensorFlow: the same as its
# `stateless_shuffle` gives, so that a run sees the same batches on every engine.
#
# Random words are Philox4x32-10 (Salmon et al. 2011); the shuffle is that of Fisher and Yates,
# forward. The key follows from (seed, epoch) as TensorFlow's stateless operations make it.

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
SCRAMBLE_KEY = (0x3EC8F720, 0x02461E29)
LOW = 0xFFFFFFFF  # 32 bits


def epoch_order(seed: int, epoch: int, count: int) -> NDArray[np.int32]:
    """A permutation of 0 to count - 1, int32 (count,); `epoch` counts from 0."""
    seeds = np.array([seed & LOW, seed >> 32, epoch & LOW, epoch >> 32], np.uint64)
    mixed = philox(seeds[:, None], SCRAMBLE_KEY)[:, 0]
    blocks = -(-count // 4)
    counters = np.zeros((4, blocks), np.uint64)
    counters[0] = np.arange(blocks)
    counters[2], counters[3] = mixed[2], mixed[3]
    words = philox(counters, (int(mixed[0]), int(mixed[1]))).T.reshape(-1)
    order = list(range(count))
    for place, word in enumerate(words[: count - 1].tolist()):
        other = place + word % (count - place)
        order[place], order[other] = order[other], order[place]
    return np.array(order, np.int32)


def philox(counters: NDArray[np.uint64], key: tuple[int, int]) -> NDArray[np.uint64]:
    """Encrypts counters of four 32-bit words into four random words each: (4, n) → (4, n)."""
    first, second, third, fourth = counters
    for number in range(ROUNDS):
        keys = [(part + number * step) & LOW for part, step in zip(key, KEY_STEPS, strict=True)]
        high, low = _product(MULTIPLIERS[0], first)
        other_high, other_low = _product(MULTIPLIERS[1], third)
        first, second, third, fourth = (
            other_high ^ second ^ keys[0],
            other_low,
            high ^ fourth ^ keys[1],
            low,
        )
    return np.stack([first, second, third, fourth])


def _product(
    factor: int, words: NDArray[np.uint64]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The upper and lower halves of products of 32-bit words."""
    product = words * np.uint64(factor)
    return product >> np.uint64(32), product & np.uint64(LOW)


class RowOrder:
    """The rows of the training set that each step reads; caches the order of one epoch."""

    def __init__(self, seed: int, plan: StepPlan) -> None:
        self._seed, self._plan = seed, plan
        self._epoch = -1
        self._rows: NDArray[np.int32] = np.zeros((0,), np.int32)

    def rows(self, first_step: int, steps: int) -> NDArray[np.int32]:
        """The row numbers of `steps` steps from step `first_step` (0-based): int32 (steps, batches
        per step, batch_size_global).
        """
        return np.stack([self._step(first_step + index) for index in range(steps)])

    def prepare(self, step: int) -> None:
        """Computes the order of that step's epoch while the device works."""
        self._step(step)

    def _step(self, number: int) -> NDArray[np.int32]:
        plan, steps = self._plan, self._plan.steps_per_epoch
        epoch, step = divmod(number, steps)
        if epoch != self._epoch:
            order = epoch_order(self._seed, epoch, plan.rows)[: steps * plan.rows_per_step]
            self._rows = order.reshape(steps, plan.batches, plan.batch_size_global)
            self._epoch = epoch
        return self._rows[step]
