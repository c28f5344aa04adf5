"""From a spec to a mesh of JAX devices: one device, GPUs, the cores of a TPU, or simulated CPU cores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from gan_runtime.base.errors import AcceleratorError
from gan_runtime.base.tpu_advice import cause
from gan_runtime.engines.contract import DeviceMemory
from gan_runtime.engines.jax.arrays import AXIS
from gan_runtime.spec import RunSpec


def make_mesh(spec: RunSpec, accelerator: str) -> Mesh:
    """`spec.replicas` devices of `accelerator` (already resolved: cpu, gpu or tpu) of each worker, along one axis.

    Raises:
        AcceleratorError: JAX does not start there, or sees too few devices.
    """
    try:
        devices = jax.devices("cuda" if accelerator == "gpu" else accelerator)
    except RuntimeError as error:  # JAX's word for a platform that is not there
        raise AcceleratorError(
            f"JAX cannot use the {accelerator.upper()} ({cause(str(error))}): use engine=tensorflow, or accelerator=cpu."
        ) from None
    by_worker = [
        [device for device in devices if device.process_index == rank] for rank in range(spec.workers)
    ]
    fewest = min(len(found) for found in by_worker)
    if fewest < spec.replicas:
        raise AcceleratorError(
            f"the run wants {spec.replicas} {accelerator.upper()} device(s){' in each worker' if spec.workers > 1 else ''}, "
            f"but JAX sees {fewest}: lower replicas, or use accelerator=cpu for simulated cores."
        )
    return Mesh(np.array([device for found in by_worker for device in found[: spec.replicas]]), (AXIS,))


def fullest(devices: Sequence[Any]) -> DeviceMemory | None:
    """Memory of the device with the highest peak; None where JAX does not count it (CPU)."""
    infos = [info for info in (device.memory_stats() for device in devices) if info]
    if not infos:
        return None
    highest = max(infos, key=lambda info: info["peak_bytes_in_use"])
    return DeviceMemory(int(highest["bytes_in_use"]), int(highest["peak_bytes_in_use"]))
