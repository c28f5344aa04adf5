"""Flags that TensorFlow reads once, when it starts its devices, so a trainer sets them first of all. A person's own flags stay."""

from __future__ import annotations

import os

from gan_runtime.kept_out import keep_out
from gan_runtime.spec import RunSpec

# Level 2 makes clusters of everything that XLA can compile; without the second flag it leaves the CPU out.
AUTOCLUSTER_FLAGS = "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit"


def keep_jax_out() -> None:
    """Where JAX is installed, importing TensorFlow imports it too; two frameworks in one process may ask for the same device."""
    keep_out("jax")


def set_flags(spec: RunSpec, accelerator: str) -> None:
    """Automatic clustering where the run asks for it; and on the CPU, threads that suit as many replicas as there are cores.

    Such replicas keep the cores busy by themselves. An operation that also splits its work over all cores only waits for the
    threads of the others (measured on 2 cores, 8 replicas: 5 % more images/s with one thread an operation).
    """
    keep_jax_out()
    if spec.xla == "autocluster":
        given = os.environ.get("TF_XLA_FLAGS", "")
        os.environ["TF_XLA_FLAGS"] = f"{given} {AUTOCLUSTER_FLAGS}".strip()
    cores = os.cpu_count() or 1
    if accelerator == "cpu" and spec.workers == 1 and spec.replicas >= max(2, cores):
        os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
        os.environ.setdefault("TF_NUM_INTEROP_THREADS", str(cores))
