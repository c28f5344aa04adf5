"""Flags that TensorFlow reads once, when it starts its devices, so a trainer sets them first of all. A person's own flags stay."""

from __future__ import annotations

import os
import sys
from typing import ClassVar

from gan_runtime.spec import RunSpec

# Level 2 makes clusters of everything that XLA can compile; without the second flag it leaves the CPU out.
AUTOCLUSTER_FLAGS = "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit"


class _KeptOut:
    """Asked first by Python where a module is. `None` in sys.modules would do as well, but SciPy takes it for JAX."""

    names: ClassVar[set[str]] = set()

    @classmethod
    def find_spec(cls, name: str, *_: object) -> None:
        if name in cls.names:
            raise ImportError(f"{name} is kept out of this process")


def keep_out(*names: str) -> None:
    """Modules that TensorFlow imports by itself, and does without."""
    _KeptOut.names.update(names)
    if _KeptOut not in sys.meta_path:
        sys.meta_path.insert(0, _KeptOut)


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
