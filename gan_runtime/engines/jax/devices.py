"""The process of a JAX trainer: flags, workers, and the mesh of its devices.

Workers meet at the first worker's address: by TF_CONFIG, which the launcher sets, and so does
Kubernetes, or by Slurm's variables. No TensorFlow: it never shares a process with JAX. Functions
import JAX themselves, because it reads the flags when it is imported.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gan_runtime.base import cluster, processor, slurm
from gan_runtime.base.cluster import Members, WorkerRank
from gan_runtime.base.errors import AcceleratorError, cause
from gan_runtime.engines.contract import DeviceMemory
from gan_runtime.spec import RunSpec

if TYPE_CHECKING:
    import jax
    from jax.sharding import Mesh, Sharding

# Weights are initialized on the CPU.
PLATFORMS = {"cpu": "cpu", "gpu": "cuda,cpu", "tpu": "tpu,cpu"}
# Faster compilations are not stored: reading them would take as long.
LEAST_COMPILE_SECONDS = "0.2"
MOST_CACHE_BYTES = 2_000_000_000


def set_flags(spec: RunSpec, accelerator: str, *, trains: bool = True) -> None:  # noqa: ARG001 (same for all engines)
    """Selects Keras on JAX and JAX on the accelerator; on the CPU, one simulated core
    per replica.
    """
    os.environ["KERAS_BACKEND"] = "jax"
    os.environ["JAX_PLATFORMS"] = PLATFORMS[accelerator]
    keep_programs()
    if accelerator == "cpu":
        flags = os.environ.get("XLA_FLAGS", "")
        os.environ["XLA_FLAGS"] = (
            f"{flags} --xla_force_host_platform_device_count={spec.replicas}".strip()
        )


def keep_programs() -> None:
    """Stores what JAX compiles, so that a later process does not compile the same program again, in
    a folder of at most MOST_CACHE_BYTES now. A folder named by JAX_COMPILATION_CACHE_DIR takes
    precedence and has no limit.

    JAX finds a program by its text, its compiler options and its own version, but not by the
    instructions of the CPU, so each kind of processor has a folder.
    """
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", LEAST_COMPILE_SECONDS)
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    with suppress(OSError, RuntimeError):  # without a home folder nothing is stored
        every = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        facts = "\n".join((processor.model(), *processor.flags()))
        kind = hashlib.sha256(facts.encode()).hexdigest()[:16]
        folder = every / "gan-runtime" / f"jax-{kind}"
        os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)
        remove_oldest(folder, MOST_CACHE_BYTES)


def remove_oldest(folder: Path, most_bytes: int) -> None:
    """Removes the oldest programs until `most_bytes` are left. JAX's own limit is not used: a
    process that is killed while it stores a program ends all later storing.
    """
    programs = [(path.stat(), path) for path in folder.glob("*-cache")]
    size = sum(status.st_size for status, _ in programs)
    for status, path in sorted(programs, key=lambda program: program[0].st_mtime_ns):
        if size <= most_bytes:
            return
        path.unlink(missing_ok=True)
        size -= status.st_size


# ---- workers -------------------------------------------------------------------------------------

HEARTBEAT_SECONDS = 10  # JAX treats a worker that is silent for longer as lost, and ends the others


def place(workers: int) -> WorkerRank:
    """The rank of this process among `workers`. Raises AcceleratorError as
    `Members.from_environment`.
    """
    return Members.from_environment(workers, slurm.members).place


def join(spec: RunSpec, accelerator: str) -> None:
    """Waits for the other workers, so that JAX lists the devices of all. Must run before JAX lists
    devices.

    Raises AcceleratorError as `Members.from_environment`.
    """
    if spec.workers == 1:
        return
    import jax

    members = Members.from_environment(spec.workers, slurm.members)
    if accelerator == "cpu":
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
    cluster.meet(members)
    jax.distributed.initialize(
        coordinator_address=members.addresses[0],
        num_processes=spec.workers,
        process_id=members.rank,
        local_device_ids=list(range(spec.replicas)),
        heartbeat_timeout_seconds=HEARTBEAT_SECONDS,
    )


def leave() -> None:
    """Waits until all workers are done, since JAX would treat a worker that exits earlier as lost
    and end the others. The run's results are already stored, so a missing worker does no harm.
    """
    import jax

    if jax.distributed.is_initialized():
        with suppress(RuntimeError):
            jax.distributed.shutdown()


# ---- devices -------------------------------------------------------------------------------------

AXIS = "replicas"  # of the mesh


def put_on_devices(arrays: Any, sharding: Sharding) -> Any:
    """Puts a tree of host arrays, equal in all processes, on the devices of `sharding`."""
    import jax

    if sharding.is_fully_addressable:
        return jax.device_put(arrays, sharding)
    return jax.tree.map(
        lambda array: jax.make_array_from_callback(array.shape, sharding, lambda part: array[part]),
        arrays,
    )


def on_first_device(arrays: dict[str, jax.Array]) -> dict[str, jax.Array]:
    """Copies replicated arrays to the first device of this process."""
    return {name: array.addressable_shards[0].data for name, array in arrays.items()}


def make_mesh(spec: RunSpec, accelerator: str) -> Mesh:
    """`spec.replicas` devices of `accelerator` (already resolved: cpu, gpu or tpu) of each worker,
    along one axis.

    Raises:
        AcceleratorError: JAX does not start there, or sees too few devices.
    """
    import jax
    from jax.sharding import Mesh

    try:
        devices = jax.devices("cuda" if accelerator == "gpu" else accelerator)
    except RuntimeError as error:  # no such platform
        raise AcceleratorError(
            f"JAX cannot use the {accelerator.upper()} ({cause(str(error))}): use"
            " engine=tensorflow, or accelerator=cpu."
        ) from None
    by_worker = [
        [device for device in devices if device.process_index == rank]
        for rank in range(spec.workers)
    ]
    fewest = min(map(len, by_worker))
    if fewest < spec.replicas:
        raise AcceleratorError(
            f"the run needs {spec.replicas} {accelerator.upper()}"
            f" device(s){' in each worker' if spec.workers > 1 else ''}, but JAX sees {fewest}:"
            " lower replicas, or use accelerator=cpu for simulated cores."
        )
    devices = [device for worker_devices in by_worker for device in worker_devices[: spec.replicas]]
    return Mesh(np.array(devices), (AXIS,))


def fullest_memory(devices: Sequence[Any]) -> DeviceMemory | None:
    """The memory of the device with the highest peak; None if JAX does not count it (CPU)."""
    infos = [info for info in (device.memory_stats() for device in devices) if info]
    if not infos:
        return None
    highest = max(infos, key=lambda info: info["peak_bytes_in_use"])
    return DeviceMemory(int(highest["bytes_in_use"]), int(highest["peak_bytes_in_use"]))
