"""What a step reads on the devices: rows of a data set, and noise.

Rows are dicts of stored arrays by field. A call takes one of two pairs:

* resident: (the whole set, on every device; int32 (steps, batches, batch): which rows each step
  sees), or
* streamed: ({}; the rows themselves, (steps, batches, batch, …), read while the device computes).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from numpy.typing import NDArray

from gan_runtime.base.fields import Field, Fields
from gan_runtime.data.contract import DataSet
from gan_runtime.engines.inputs import RowOrder
from gan_runtime.engines.jax.devices import AXIS, put_on_devices
from gan_runtime.engines.jax.tpu_volumes import flat, is_volume

LANES = 128  # adjacent numbers in a TPU's memory
REPLICATED = PartitionSpec()
# Of (steps, batches, batch, …): each replica gets its share of every batch.
SHARDED = PartitionSpec(None, None, AXIS)
Rows = dict[str, Any]


# ---- layout of rows ------------------------------------------------------------------------------


def device_shape(field: Field) -> tuple[int, ...]:
    """The shape of a row on a device: large rows are flat and padded to whole lanes; small ones,
    such as labels, are unchanged.

    Otherwise a TPU would pad a last axis of one channel to 128, and transpose the whole set in each
    call.
    """
    numbers = math.prod(field.shape)
    return field.shape if numbers < LANES else (-(-numbers // LANES) * LANES,)


def to_device_layout(field: Field, stored: NDArray[Any]) -> NDArray[Any]:
    """(…, *shape of the field) → (…, *device_shape), padded with zeros. On the host."""
    leading = stored.shape[: stored.ndim - len(field.shape)]
    width = math.prod(device_shape(field)) - math.prod(field.shape)
    if not width:
        return stored.reshape(*leading, *device_shape(field))
    return np.pad(stored.reshape(*leading, -1), [(0, 0)] * len(leading) + [(0, width)])


def from_device_layout(field: Field, rows: jax.Array) -> jax.Array:
    """(…, *device_shape) → (…, *shape of the field). On the device."""
    if device_shape(field) == field.shape:
        return rows
    return rows[..., : math.prod(field.shape)].reshape(*rows.shape[:-1], *field.shape)


# ---- rows of a call ------------------------------------------------------------------------------


def row_shapes(
    fields: Fields, mesh: Mesh, sizes: tuple[int, int, int], rows: int | None
) -> tuple[Rows, Any]:
    """The pair that a call takes, as shapes.

    `sizes`: (steps, batches, batch). `rows`: None when streamed.
    """

    def shaped(shape: tuple[int, ...], dtype: Any, spread: PartitionSpec) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spread))

    def in_layout(*leading: int, spread: PartitionSpec) -> Rows:
        return {
            name: shaped((*leading, *device_shape(field)), field.dtype, spread)
            for name, field in fields.items()
        }

    if rows is None:
        return {}, in_layout(*sizes, spread=SHARDED)
    return in_layout(rows, spread=REPLICATED), shaped(sizes, jnp.int32, SHARDED)


def step_rows(fields: Fields, resident: Rows, call_rows: Any, index: Any) -> Rows:
    """Stored rows (batches, share, *shape) of one step of a call, on a replica."""
    if not resident:
        return {
            name: from_device_layout(field, call_rows[name][index])
            for name, field in fields.items()
        }
    numbers = call_rows[index]
    return {
        name: (
            from_device_layout(
                field, jnp.take(resident[name], numbers.reshape(-1), axis=0, mode="clip")
            ).reshape(*numbers.shape, *field.shape)
        )
        for name, field in fields.items()
    }


class Feed(Protocol):
    """The rows of a run's calls. `resident`: the first part of the pair, equal in every call."""

    resident: Rows

    def call_rows(self, first_step: int, steps: int) -> Any:
        """The second part for `steps` steps after `first_step`, padded to the longest call."""
        ...

    def prepare(self, first_step: int) -> None:
        """Prepares the call that begins after `first_step` steps, while the device works."""
        ...


def feed(data: DataSet, order: RowOrder, mesh: Mesh, longest: int) -> Feed:
    """A feed with the rows of `data` in this order; the longest call has `longest` steps."""
    return (StreamedRows if data.resident is None else ResidentRows)(data, order, mesh, longest)


class ResidentRows:
    """A feed with the whole set on every device."""

    def __init__(self, data: DataSet, order: RowOrder, mesh: Mesh, longest: int) -> None:
        assert data.resident is not None
        self._order, self._longest, self._mesh = order, longest, mesh
        rows = {
            name: to_device_layout(field, data.resident[name])
            for name, field in data.fields.items()
        }
        self.resident: Rows = put_on_devices(rows, NamedSharding(mesh, REPLICATED))

    def call_rows(self, first_step: int, steps: int) -> Any:
        """int32 (longest, batches, batch), padded with zeros."""
        rows = self._order.rows(first_step, steps)
        padded = np.pad(rows, ((0, self._longest - steps), (0, 0), (0, 0)))
        return put_on_devices(padded, NamedSharding(self._mesh, SHARDED))

    def prepare(self, first_step: int) -> None:
        self._order.prepare(first_step)


class StreamedRows:
    """A feed whose thread reads the rows of the next call and sends them to the devices.

    Each process reads only the rows of its devices.
    """

    def __init__(self, data: DataSet, order: RowOrder, mesh: Mesh, longest: int) -> None:
        self.resident: Rows = {}
        self._data, self._order, self._longest = data, order, longest
        self._sharding = NamedSharding(mesh, SHARDED)
        self._read_steps = range(0)
        # Rows of these steps on the host: (steps, batches, share of this process, …).
        self._read_rows: Rows = {}
        self._reader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="rows")
        self._pending: tuple[int, Future[Rows]] | None = None

    def call_rows(self, first_step: int, steps: int) -> Rows:  # noqa: ARG002
        """(longest, batches, batch, …) by field, with rows of later steps."""
        return self._prepared(first_step).result()

    def prepare(self, first_step: int) -> None:
        self._prepared(first_step)

    def _prepared(self, first_step: int) -> Future[Rows]:
        if self._pending is None or self._pending[0] != first_step:
            self._pending = first_step, self._reader.submit(self._send, first_step)
        return self._pending[1]

    # ---- in the thread ---------------------------------------------------------------------------

    def _send(self, first_step: int) -> Rows:
        """Rows of the longest call, on the devices."""
        steps = range(first_step, first_step + self._longest)
        self._read_rows, self._read_steps = self._extended(steps), steps
        rows: Rows = jax.make_array_from_process_local_data(self._sharding, self._read_rows)
        return rows

    def _extended(self, steps: range) -> Rows:
        """Rows left over from a short call, and new ones from the data set."""
        if steps.start not in self._read_steps:
            return self.read(steps)
        skipped = steps.start - self._read_steps.start
        fresh = self.read(range(self._read_steps.stop, steps.stop))
        return {
            name: np.concatenate([self._read_rows[name][skipped:], rows])
            for name, rows in fresh.items()
        }

    def read(self, steps: range) -> Rows:
        """Rows of these steps for the devices of this process, in the layout of a device."""
        shares = np.split(self._order.rows(steps.start, len(steps)), jax.process_count(), axis=2)
        numbers = shares[jax.process_index()]
        stored = self._data.read(numbers.reshape(-1).astype(np.int64))
        return {
            name: to_device_layout(field, stored[name]).reshape(
                *numbers.shape, *device_shape(field)
            )
            for name, field in self._data.fields.items()
        }


# ---- noise ---------------------------------------------------------------------------------------
#
# Each row of the global batch has numbers of its key (seed, step, row), so the number of
# replicas changes nothing, and a replica draws its own rows only. Dropout masks are keyed by the
# replica as well and come from the device's own generator, which gives other numbers on another
# kind of device. (On a TPU, random numbers made in software took 72% of a step, by the compiler's
# estimate.)

STREAMS_PER_PHASE = 1000  # more than any phase uses
REQUEST_PLACE = 1000  # replaces the index of a phase; larger than any
# An 8-bit number decides each unit, which takes a quarter of the random bits of floats.
LEVELS = 256


class JaxStepNoise:
    """A `workloads.contract.Noise`. Every call opens a new stream, in the order of the trace.

    `share`: index of this part of the global batch, over replicas and accumulation steps.
    `place`: index of the phase in the program; each phase has its own streams.
    """

    def __init__(self, seed: int, step: jax.Array, share: jax.Array, place: int = 0) -> None:
        self._seed, self._step, self._share = seed, step, share
        self._streams = place * STREAMS_PER_PHASE

    def normal(self, rows: int, *shape: int) -> jax.Array:
        """float32 (rows, *shape)."""
        return self._by_row(rows, lambda key: jax.random.normal(key, shape))

    def uniform(self, rows: int, *shape: int) -> jax.Array:
        """float32 (rows, *shape), from 0 to below 1."""
        return self._by_row(rows, lambda key: jax.random.uniform(key, shape))

    def dropout(self, values: jax.Array, rate: float) -> jax.Array:
        """Same shape and dtype as `values`; the retained share is rounded to a 256th and scaled
        exactly.
        """
        retained_levels = round((1.0 - rate) * LEVELS)
        if retained_levels == LEVELS:  # no byte holds it: it would wrap to 0 and drop everything
            return values
        words = jax.random.bits(jax.random.fold_in(self._step_key(), self._share), (4,), jnp.uint32)
        # Volumes in the layout of a TPU's convolutions: another shape would cost a copy.
        in_layout = flat(values) if is_volume(values) else values
        _, levels = jax.lax.rng_bit_generator(words, in_layout.shape, jnp.uint8)
        return _thinned(in_layout, jax.lax.optimization_barrier(levels), retained_levels).reshape(
            values.shape
        )

    def _by_row(self, rows: int, draw: Callable[[jax.Array], jax.Array]) -> jax.Array:
        key, numbers = self._step_key(), self._row_numbers(rows)
        return jax.vmap(lambda number: draw(jax.random.fold_in(key, number)))(numbers)

    def _row_numbers(self, rows: int) -> jax.Array:
        return self._share * rows + jnp.arange(rows)

    def _step_key(self) -> jax.Array:
        self._streams += 1
        return jax.random.fold_in(
            jax.random.fold_in(jax.random.key(self._seed), self._streams), self._step
        )


class JaxRequestNoise(JaxStepNoise):
    """Noise of rows on request.

    `seed`: of the request, not of the run; `first`: index of the chunk's first row in the request.
    """

    def __init__(self, seed: jax.Array, share: jax.Array, first: jax.Array) -> None:
        super().__init__(0, seed, share, place=REQUEST_PLACE)
        self._first = first

    def _row_numbers(self, rows: int) -> jax.Array:
        return self._first + super()._row_numbers(rows)


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def _thinned(values: jax.Array, levels: jax.Array, retained_levels: int) -> jax.Array:
    return jnp.where(
        levels < retained_levels, values * jnp.asarray(LEVELS / retained_levels, values.dtype), 0
    )


def _forward(
    values: jax.Array, levels: jax.Array, retained_levels: int
) -> tuple[jax.Array, jax.Array]:
    return _thinned(values, levels, retained_levels), levels


def _backward(
    retained_levels: int, levels: jax.Array, upstream: jax.Array
) -> tuple[jax.Array, None]:
    """Compares again, since a TPU's compiler would pack a stored mask into bits, which
    is slower.
    """
    return _thinned(upstream, jax.lax.optimization_barrier(levels), retained_levels), None


_thinned.defvjp(_forward, _backward)
