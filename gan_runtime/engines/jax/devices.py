"""From a spec to a mesh of JAX devices (one device, GPUs, the cores of a TPU, simulated CPU
cores), and arrays on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec, Sharding

from gan_runtime.base.errors import AcceleratorError
from gan_runtime.base.tpu_advice import cause
from gan_runtime.engines.contract import DeviceMemory
from gan_runtime.spec import RunSpec

# ----------------------------------------------------------------------
# Arrays on the devices of a mesh, also of one that reaches over several processes.

AXIS = "replicas"  # of the mesh


def placed(arrays: Any, sharding: Sharding) -> Any:
    """A tree of host arrays, the same in all processes, on the devices: each process fills
    its own.
    """
    if sharding.is_fully_addressable:
        return jax.device_put(arrays, sharding)  # in one go, where it may
    return jax.tree.map(
        lambda array: jax.make_array_from_callback(array.shape, sharding, lambda part: array[part]),
        arrays,
    )


def on_first_device(arrays: dict[str, jax.Array]) -> dict[str, jax.Array]:
    """Arrays that are the same on all devices, as the first one of this process holds them."""
    return {name: array.addressable_shards[0].data for name, array in arrays.items()}


class Poll:
    """Lowest and highest of the numbers that all processes tell each other.

    All must ask at the same time.
    """

    def __init__(self, mesh: Mesh) -> None:
        self._places = NamedSharding(mesh, PartitionSpec(AXIS))
        self._size = mesh.size
        self._extremes = jax.jit(
            lambda told: (told.min(), told.max()),
            out_shardings=NamedSharding(mesh, PartitionSpec()),
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


def make_mesh(spec: RunSpec, accelerator: str) -> Mesh:
    """`spec.replicas` devices of `accelerator` (already resolved: cpu, gpu or tpu) of each worker,
    along one axis.

    Raises:
        AcceleratorError: JAX does not start there, or sees too few devices.
    """
    try:
        devices = jax.devices("cuda" if accelerator == "gpu" else accelerator)
    except RuntimeError as error:  # JAX's word for a platform that is not there
        raise AcceleratorError(
            f"JAX cannot use the {accelerator.upper()} ({cause(str(error))}): use"
            " engine=tensorflow, or accelerator=cpu."
        ) from None
    by_worker = [
        [device for device in devices if device.process_index == rank]
        for rank in range(spec.workers)
    ]
    fewest = min(len(found) for found in by_worker)
    if fewest < spec.replicas:
        raise AcceleratorError(
            f"the run wants {spec.replicas} {accelerator.upper()}"
            f" device(s){' in each worker' if spec.workers > 1 else ''}, but JAX sees {fewest}:"
            " lower replicas, or use accelerator=cpu for simulated cores."
        )
    return Mesh(
        np.array([device for found in by_worker for device in found[: spec.replicas]]), (AXIS,)
    )


def fullest(devices: Sequence[Any]) -> DeviceMemory | None:
    """Memory of the device with the highest peak; None where JAX does not count it (CPU)."""
    infos = [info for info in (device.memory_stats() for device in devices) if info]
    if not infos:
        return None
    highest = max(infos, key=lambda info: info["peak_bytes_in_use"])
    return DeviceMemory(int(highest["bytes_in_use"]), int(highest["peak_bytes_in_use"]))
