"""The process of a JAX trainer: flags that are read once, which of several workers it is, how they
meet, and how they part.

Under TF_CONFIG (our launcher sets it, and so do Kubernetes and people) they meet at the first
worker's address; under Slurm JAX finds a meeting place itself. No TensorFlow here: it never shares
a process with JAX. And no JAX until a worker joins: a place is asked for before the flags are set
that JAX reads when it is imported.
"""

from __future__ import annotations

import os
from contextlib import suppress

from gan_runtime.base import cluster
from gan_runtime.base.cluster import Members, Place
from gan_runtime.spec import RunSpec

PLATFORMS = {
    "cpu": "cpu",
    "gpu": "cuda,cpu",
    "tpu": "tpu,cpu",
}  # the CPU beside it makes the first weights


def set_flags(spec: RunSpec, accelerator: str, *, trains: bool = True) -> None:  # noqa: ARG001 (as every engine is asked)
    """Keras on JAX, JAX on the accelerator; on the CPU as many simulated cores as there are
    replicas.
    """
    os.environ["KERAS_BACKEND"] = "jax"
    os.environ["JAX_PLATFORMS"] = PLATFORMS[accelerator]
    if accelerator == "cpu":
        given = os.environ.get("XLA_FLAGS", "")
        os.environ["XLA_FLAGS"] = (
            f"{given} --xla_force_host_platform_device_count={spec.replicas}".strip()
        )


# ---- workers -------------------------------------------------------------------------------------

HEARTBEAT_SECONDS = 10  # after which JAX gives a silent worker up, and ends the others
FOUND_BY_JAX = ""  # in the place of an address


def place(workers: int) -> Place:
    """This process among `workers`. Raises AcceleratorError as `Members.found`."""
    return Members.found(workers, _in_slurm).place


def join(spec: RunSpec, accelerator: str) -> None:
    """Waits for the other workers, so that the devices of all are seen.

    Comes before JAX looks for devices.

    Raises AcceleratorError as `Members.found`.
    """
    if spec.workers == 1:
        return
    import jax

    members = Members.found(spec.workers, _in_slurm)
    if accelerator == "cpu":
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
    if members.addresses[0]:
        cluster.meet(members)
    jax.distributed.initialize(
        coordinator_address=members.addresses[0] or None,
        num_processes=spec.workers,
        process_id=members.rank,
        local_device_ids=list(range(spec.replicas)),
        heartbeat_timeout_seconds=HEARTBEAT_SECONDS,
    )


def leave() -> None:
    """Waits until all workers are done.

    JAX would take one that just went for lost, and end the others.

    What the run has made is stored by then, so a worker that is missing at the parting changes
    nothing.
    """
    import jax

    if jax.distributed.is_initialized():
        with suppress(RuntimeError):
            jax.distributed.shutdown()


def _in_slurm() -> Members:
    return Members(
        int(os.environ["SLURM_PROCID"]), (FOUND_BY_JAX,) * int(os.environ["SLURM_STEP_NUM_TASKS"])
    )
