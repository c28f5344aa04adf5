"""Flags that TensorFlow reads once, when it starts its devices, so a trainer sets them first of all."""

from __future__ import annotations

import os

from gan_runtime.spec import RunSpec

# Level 2 makes clusters of everything that XLA can compile; without the second flag it leaves the CPU out.
AUTOCLUSTER_FLAGS = "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit"


def set_flags(spec: RunSpec) -> None:
    """Turns automatic clustering on where the run asks for it; flags that the person has set stay."""
    if spec.xla == "autocluster":
        given = os.environ.get("TF_XLA_FLAGS", "")
        os.environ["TF_XLA_FLAGS"] = f"{given} {AUTOCLUSTER_FLAGS}".strip()
