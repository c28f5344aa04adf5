"""The process of a TensorFlow trainer: flags that are read once, memory that is kept, and its place
in a cluster.

The place is TF_CONFIG as it stands, or made from Slurm's variables by TensorFlow's resolver. Flags
of a person's own that are let through stay.
"""

from __future__ import annotations

import ctypes
import os

from gan_runtime.base import cluster
from gan_runtime.base.blocked_imports import keep_out
from gan_runtime.base.cluster import Members, Place
from gan_runtime.spec import RunSpec

# Level 2 makes clusters of everything that XLA can compile; without the second flag it leaves the
# CPU out.
AUTOCLUSTER_FLAGS = "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit"


def keep_jax_out() -> None:
    """Where JAX is installed, importing TensorFlow imports it too; two frameworks in one
    process may ask for the same device.
    """
    keep_out("jax")


def set_flags(spec: RunSpec, accelerator: str, *, trains: bool = True) -> None:
    """Automatic clustering where the run asks for it; and on the CPU, memory that stays in the
    process from step to step (`keep_freed_memory`), and threads that suit as many replicas as there
    are cores.

    Such replicas keep the cores busy by themselves. An operation that also splits its work over all
    cores only waits for the threads of the others (measured on 2 cores, 8 replicas: 5 % more
    images/s with one thread an operation). So it is with small layers on 2 cores, as the updates of
    two networks have operations to run beside each other (decision 48; more cores were not
    measured). `trains`: a network that only makes pictures has one operation at a time, which may
    use all cores.
    """
    keep_jax_out()
    if spec.xla == "autocluster":
        given = os.environ.get("TF_XLA_FLAGS", "")
        os.environ["TF_XLA_FLAGS"] = f"{given} {AUTOCLUSTER_FLAGS}".strip()
    if accelerator == "cpu":
        keep_freed_memory()
    cores = os.cpu_count() or 1
    has_small_layers = trains and cores == 2 and spec.entry.small_layers(spec.of_workload)
    if (
        accelerator == "cpu"
        and spec.workers == 1
        and (spec.replicas >= max(2, cores) or has_small_layers)
    ):
        os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
        os.environ.setdefault("TF_NUM_INTEROP_THREADS", str(cores))


# ----------------------------------------------------------------------
# Keeps in the process what TensorFlow frees on the CPU within a step, for the next step to take.
#
# glibc gives a thread's memory back to the system as soon as a region of 64 MB is free, and the
# next step asks for it again, page by page, each one cleared by the kernel. A step of a small U-Net
# (tiles of 64 pixels, batch 16) took 5,250 such pages in float32, and a fifth of its processor time
# was the system's. Peak memory stays as it is; only the memory between two peaks is no longer given
# back.

# Numbers of `mallopt`, malloc.h of glibc: how much at the end of a region may be free before it is
# given back, how much of it stays then (a whole region), and from what size on an array is a region
# of its own (glibc takes no more than half of one).
TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3
KEPT = {TRIM_THRESHOLD: 2**31 - 1, TOP_PAD: 64 * 2**20, MMAP_THRESHOLD: 32 * 2**20}
CHOSEN_BY_A_PERSON = ("MALLOC_", "GLIBC_TUNABLES")


def keep_freed_memory() -> bool:
    """Whether it does: not where a person has chosen for malloc, nor with another C library."""
    if any(name.startswith(CHOSEN_BY_A_PERSON) for name in os.environ):
        return False
    option = getattr(ctypes.CDLL(None), "mallopt", None)
    return option is not None and all(option(name, value) for name, value in KEPT.items())


# ---- place in a cluster --------------------------------------------------------------------------

FIRST_PORT = 18_900  # of the workers on one Slurm node; worker n listens on FIRST_PORT + n


def place(workers: int) -> Place:
    """This process among `workers`.

    Under Slurm it also sets TF_CONFIG, from which the strategy learns the addresses.

    Raises AcceleratorError as `Members.found`.
    """
    members = Members.found(workers, _in_slurm)
    os.environ.setdefault("TF_CONFIG", cluster.tf_config(list(members.addresses), members.rank))
    return members.place


def leave() -> None:
    """Nothing to do: TensorFlow's workers part without a word."""


def _in_slurm() -> Members:
    keep_jax_out()
    import tensorflow as tf

    # Which GPUs a task may see is Slurm's own business (--gpus-per-task). The resolver would deal
    # them out itself and cannot without any, so it is told of one per task and to leave
    # CUDA_VISIBLE_DEVICES alone.
    tasks = int(os.environ["SLURM_STEP_NUM_TASKS"])
    resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
        port_base=FIRST_PORT, gpus_per_node=tasks, gpus_per_task=1, auto_set_gpu=False
    )
    addresses = tuple(
        resolver.cluster_spec().as_dict()["worker"]
    )  # first: only then it knows the task
    return Members(int(resolver.task_id), addresses)
