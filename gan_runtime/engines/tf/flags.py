"""Flags that TensorFlow reads once, when it starts its devices, so a trainer sets them first of all. Flags of a person's own that are let through stay."""

from __future__ import annotations

import os

from gan_runtime.base.blocked_imports import keep_out
from gan_runtime.engines.tf.freed_memory import keep_freed_memory
from gan_runtime.spec import RunSpec

# Level 2 makes clusters of everything that XLA can compile; without the second flag it leaves the CPU out.
AUTOCLUSTER_FLAGS = "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit"


def keep_jax_out() -> None:
    """Where JAX is installed, importing TensorFlow imports it too; two frameworks in one process may ask for the same device."""
    keep_out("jax")


def set_flags(spec: RunSpec, accelerator: str, *, trains: bool = True) -> None:
    """Automatic clustering where the run asks for it; and on the CPU, memory that stays in the process from step to step
    (freed_memory.py), and threads that suit as many replicas as there are cores.

    Such replicas keep the cores busy by themselves. An operation that also splits its work over all cores only waits for the
    threads of the others (measured on 2 cores, 8 replicas: 5 % more images/s with one thread an operation). So it is with small layers on 2
    cores, as the updates of two networks have operations to run beside each other (decision 48; more cores were not measured). `trains`: a
    network that only makes pictures has one operation at a time, which may use all cores.
    """
    keep_jax_out()
    if spec.xla == "autocluster":
        given = os.environ.get("TF_XLA_FLAGS", "")
        os.environ["TF_XLA_FLAGS"] = f"{given} {AUTOCLUSTER_FLAGS}".strip()
    if accelerator == "cpu":
        keep_freed_memory()
    cores = os.cpu_count() or 1
    has_small_layers = trains and cores == 2 and spec.entry.small_layers(spec.of_workload)
    if accelerator == "cpu" and spec.workers == 1 and (spec.replicas >= max(2, cores) or has_small_layers):
        os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
        os.environ.setdefault("TF_NUM_INTEROP_THREADS", str(cores))
