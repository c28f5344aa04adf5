"""Rows of a data set in the JAX engine: how they lie in a device's memory, and how a call gets
them.

Rows are dicts of stored arrays by field. What a call takes of them is a pair:

* resident: (the whole set, on every device; int32 (steps, batches, batch): which rows each step
  sees), or
* streamed: ({}; the rows themselves, (steps, batches, batch, …), read while the device was at
  work).
"""

from __future__ import annotations

import math
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from numpy.typing import NDArray

from gan_runtime.base.fields import Field, Fields
from gan_runtime.data.contract import DataSet
from gan_runtime.engines.image_order import RowOrder
from gan_runtime.engines.jax.devices import AXIS, placed

LANES = 128  # numbers that stand side by side in a TPU's memory
EVERYWHERE = PartitionSpec()
# Of (steps, batches, batch, …): each replica has its share of every batch.
SHARED = PartitionSpec(None, None, AXIS)
Rows = dict[str, Any]


# ---- how rows lie --------------------------------------------------------------------------------


def lying_shape(field: Field) -> tuple[int, ...]:
    """Of one row: a large one is flat and filled up to whole lanes, a small one such as a label
    stays.

    A TPU would pad a last axis of one channel to 128, and turn over the whole set in each call if
    rows were not whole lanes.
    """
    numbers = math.prod(field.shape)
    return field.shape if numbers < LANES else (-(-numbers // LANES) * LANES,)


def laid(field: Field, stored: NDArray[Any]) -> NDArray[Any]:
    """(…, *shape of the field) → (…, *lying_shape), filled up with zeros. On the host."""
    leading = stored.shape[: stored.ndim - len(field.shape)]
    width = math.prod(lying_shape(field)) - math.prod(field.shape)
    if not width:
        return stored.reshape(*leading, *lying_shape(field))
    return np.pad(stored.reshape(*leading, -1), [(0, 0)] * len(leading) + [(0, width)])


def lifted(field: Field, lying: jax.Array) -> jax.Array:
    """(…, *lying_shape) → (…, *shape of the field). On the device."""
    if lying_shape(field) == field.shape:
        return lying
    return lying[..., : math.prod(field.shape)].reshape(*lying.shape[:-1], *field.shape)


# ---- what a call takes of them -------------------------------------------------------------------


def shapes(
    fields: Fields, mesh: Mesh, taken: tuple[int, int, int], rows: int | None
) -> tuple[Rows, Any]:
    """The pair that a call takes, as shapes.

    `taken`: (steps, batches, batch). `rows`: None when streamed.
    """

    def shaped(shape: tuple[int, ...], dtype: Any, spread: PartitionSpec) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spread))

    def lying(*leading: int, spread: PartitionSpec) -> Rows:
        return {
            name: shaped((*leading, *lying_shape(field)), field.dtype, spread)
            for name, field in fields.items()
        }

    if rows is None:
        return {}, lying(*taken, spread=SHARED)
    return lying(rows, spread=EVERYWHERE), shaped(taken, jnp.int32, SHARED)


def of_step(fields: Fields, resident: Rows, taken: Any, index: Any) -> Rows:
    """Stored rows (batches, share, *shape) of one step of a call, on a replica.

    `taken`: see above.
    """
    if not resident:
        return {name: lifted(field, taken[name][index]) for name, field in fields.items()}
    wanted = taken[index]
    return {
        name: (
            lifted(
                field, jnp.take(resident[name], wanted.reshape(-1), axis=0, mode="clip")
            ).reshape(*wanted.shape, *field.shape)
        )
        for name, field in fields.items()
    }


class Feed(Protocol):
    """What a run's calls take. `resident`: the first half of the pair, the same in every call."""

    resident: Rows

    def taken(self, first_step: int, steps: int) -> Any:
        """The second half for `steps` steps after `first_step`, as long as for the longest call."""
        ...

    def prepare(self, first_step: int) -> None:
        """Tells after how many steps the next call will begin, while the device is at work."""
        ...


def feed(data: DataSet, order: RowOrder, mesh: Mesh, longest: int) -> Feed:
    """The steps see the rows of `data` in this order; the longest call makes `longest` steps."""
    return (StreamedRows if data.resident is None else ResidentRows)(data, order, mesh, longest)


class ResidentRows:
    """The whole set lies on every device."""

    def __init__(self, data: DataSet, order: RowOrder, mesh: Mesh, longest: int) -> None:
        assert data.resident is not None
        self._order, self._longest, self._mesh = order, longest, mesh
        lying = {name: laid(field, data.resident[name]) for name, field in data.fields.items()}
        self.resident: Rows = placed(lying, NamedSharding(mesh, EVERYWHERE))

    def taken(self, first_step: int, steps: int) -> Any:
        """int32 (longest, batches, batch), filled up with zeros."""
        wanted = self._order.rows(first_step, steps)
        filled = np.pad(wanted, ((0, self._longest - steps), (0, 0), (0, 0)))
        return placed(filled, NamedSharding(self._mesh, SHARED))

    def prepare(self, first_step: int) -> None:
        """The order of an epoch takes a moment."""
        self._order.prepare(first_step)


class StreamedRows:
    """A thread reads what the next call takes, and sends it to the devices.

    Each process reads for its own devices alone.
    """

    def __init__(self, data: DataSet, order: RowOrder, mesh: Mesh, longest: int) -> None:
        self.resident: Rows = {}
        self._data, self._order, self._longest = data, order, longest
        self._sharding = NamedSharding(mesh, SHARED)
        self._held_steps = range(0)
        self._held: Rows = {}  # rows of these steps on the host: (steps, batches, own share, …)
        self._reader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="rows")
        self._pending: tuple[int, Future[Rows]] | None = None

    def taken(self, first_step: int, steps: int) -> Rows:  # noqa: ARG002
        """(longest, batches, batch, …) by field, with those of later steps.

        Raises what reading raises.
        """
        return self._prepared(first_step).result()

    def prepare(self, first_step: int) -> None:
        """Begins to read."""
        self._prepared(first_step)

    def _prepared(self, first_step: int) -> Future[Rows]:
        if self._pending is None or self._pending[0] != first_step:
            self._pending = first_step, self._reader.submit(self._sent, first_step)
        return self._pending[1]

    # ---- in the thread ---------------------------------------------------------------------------

    def _sent(self, first_step: int) -> Rows:
        """Rows of the longest call, on the devices."""
        steps = range(first_step, first_step + self._longest)
        self._held, self._held_steps = self._extended(steps), steps
        sent: Rows = jax.make_array_from_process_local_data(self._sharding, self._held)
        return sent

    def _extended(self, steps: range) -> Rows:
        """Those that a short call has left, and the others from the data set."""
        if steps.start not in self._held_steps:
            return self.read(steps)
        skipped = steps.start - self._held_steps.start
        fresh = self.read(range(self._held_steps.stop, steps.stop))
        return {
            name: np.concatenate([self._held[name][skipped:], rows]) for name, rows in fresh.items()
        }

    def read(self, steps: range) -> Rows:
        """Rows of this process' devices for these steps, as they lie in a device's memory."""
        shares = np.split(self._order.rows(steps.start, len(steps)), jax.process_count(), axis=2)
        wanted = shares[jax.process_index()]
        stored = self._data.read(wanted.reshape(-1).astype(np.int64))
        return {
            name: laid(field, stored[name]).reshape(*wanted.shape, *lying_shape(field))
            for name, field in self._data.fields.items()
        }
