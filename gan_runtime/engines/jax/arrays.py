"""Arrays on the devices of a mesh, also of one that reaches over several processes."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec, Sharding

AXIS = "replicas"  # of the mesh


def placed(arrays: Any, sharding: Sharding) -> Any:
    """A tree of host arrays, the same in all processes, on the devices: each process fills its own."""
    if sharding.is_fully_addressable:
        return jax.device_put(arrays, sharding)  # in one go, where it may
    return jax.tree.map(
        lambda array: jax.make_array_from_callback(array.shape, sharding, lambda part: array[part]), arrays
    )


def on_first_device(arrays: dict[str, jax.Array]) -> dict[str, jax.Array]:
    """Arrays that are the same on all devices, as the first one of this process holds them."""
    return {name: array.addressable_shards[0].data for name, array in arrays.items()}


class Poll:
    """Lowest and highest of the numbers that all processes tell each other. All must ask at the same time."""

    def __init__(self, mesh: Mesh) -> None:
        self._places = NamedSharding(mesh, PartitionSpec(AXIS))
        self._size = mesh.size
        self._extremes = jax.jit(
            lambda told: (told.min(), told.max()), out_shardings=NamedSharding(mesh, PartitionSpec())
        )

    def __call__(self, number: int) -> tuple[int, int]:
        """`number`: below 2^31."""
        told = np.full(
            self._size, number, np.int32
        )  # of which this process puts down the part of its own devices
        lowest, highest = self._extremes(
            jax.make_array_from_callback(told.shape, self._places, lambda part: told[part])
        )
        return int(lowest), int(highest)
