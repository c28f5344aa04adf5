"""What JAX and Keras read once, when they are loaded, so a trainer sets it first of all. Flags of a person's own that are let through stay."""

from __future__ import annotations

import os

from gan_runtime.spec import RunSpec

PLATFORMS = {"cpu": "cpu", "gpu": "cuda,cpu", "tpu": "tpu,cpu"}  # the CPU beside it makes the first weights


def set_flags(spec: RunSpec, accelerator: str, *, trains: bool = True) -> None:  # noqa: ARG001 (as every engine is asked)
    """Keras on JAX, JAX on the accelerator; on the CPU as many simulated cores as there are replicas."""
    os.environ["KERAS_BACKEND"] = "jax"
    os.environ["JAX_PLATFORMS"] = PLATFORMS[accelerator]
    if accelerator == "cpu":
        given = os.environ.get("XLA_FLAGS", "")
        os.environ["XLA_FLAGS"] = f"{given} --xla_force_host_platform_device_count={spec.replicas}".strip()
