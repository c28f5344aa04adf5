"""The process of a TensorFlow trainer: flags, freed memory, and its rank in a cluster.

The rank comes from TF_CONFIG, or from Slurm's variables. Flags of the user stay in force. No
TensorFlow here, because it reads the flags when it is imported.
"""

from __future__ import annotations

import ctypes
import os

from gan_runtime.base import cluster, slurm
from gan_runtime.base.cluster import Members, WorkerRank
from gan_runtime.base.framework_settings import block_imports
from gan_runtime.spec import RunSpec

# Level 2 makes clusters of everything that XLA can compile; the second flag includes the CPU.
AUTOCLUSTER_FLAGS = "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit"


def keep_jax_out() -> None:
    """Blocks the import of JAX, which TensorFlow would import if installed; both could claim the
    same device.
    """
    block_imports("jax")


def set_flags(spec: RunSpec, accelerator: str, *, trains: bool = True) -> None:
    """Automatic clustering where an option selects it; on the CPU, memory that stays in the process
    between steps, and one thread per operation for as many replicas as cores.

    Such replicas occupy the cores by themselves. An operation that also splits its work over all
    cores waits for the threads of others (measured on 2 cores, 8 replicas: 5% more images/s with
    one thread). The same holds for small layers on 2 cores, where the updates of two networks run
    in parallel (decision 11; more cores were not measured). `trains`: inference has one operation
    at a time, which may use all cores.
    """
    keep_jax_out()
    if spec.xla == "autocluster":
        flags = os.environ.get("TF_XLA_FLAGS", "")
        os.environ["TF_XLA_FLAGS"] = f"{flags} {AUTOCLUSTER_FLAGS}".strip()
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
# Memory that TensorFlow frees on the CPU within a step stays in the process for the next step.
#
# glibc returns a thread's memory to the system as soon as a region of 64 MB is free, and the next
# step requests it again, page by page, each one cleared by the kernel. A step of a small U-Net
# (tiles of 64 pixels, batch 16) took 5,250 such pages in float32, and a fifth of its processor time
# was the system's. Peak memory does not change.

# Numbers of `mallopt`, malloc.h of glibc: free memory at the end of a region before glibc returns
# it, how much of it stays then (a whole region), and the least size of an array with its own region
# (glibc allows half a region at most).
TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3
MALLOC_OPTIONS = {TRIM_THRESHOLD: 2**31 - 1, TOP_PAD: 64 * 2**20, MMAP_THRESHOLD: 32 * 2**20}
USER_SETTINGS = ("MALLOC_", "GLIBC_TUNABLES")


def keep_freed_memory() -> bool:
    """Makes glibc keep freed memory. Returns False if the user has set malloc's options, or with
    another C library.
    """
    if any(name.startswith(USER_SETTINGS) for name in os.environ):
        return False
    option = getattr(ctypes.CDLL(None), "mallopt", None)
    return option is not None and all(option(name, value) for name, value in MALLOC_OPTIONS.items())


# ---- place in a cluster --------------------------------------------------------------------------


def place(workers: int) -> WorkerRank:
    """The rank of this process among `workers`.

    Under Slurm it also sets TF_CONFIG, from which the strategy reads the addresses.

    Raises AcceleratorError as `Members.from_environment`.
    """
    members = Members.from_environment(workers, slurm.members)
    os.environ.setdefault("TF_CONFIG", cluster.tf_config(list(members.addresses), members.rank))
    return members.place


def leave() -> None:
    """Does nothing, since TensorFlow's workers exit independently."""
