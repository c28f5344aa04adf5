"""The part of a spec that workloads read."""

from __future__ import annotations

from gan_runtime.spec import RunSpec
from gan_runtime.workloads.contract import Objective


def objective_of(spec: RunSpec) -> Objective:
    """What the networks of a run are trained towards."""
    return Objective(
        generator_loss=spec.generator_loss,
        updates=spec.updates,
        discriminator_steps=spec.discriminator_steps,
        real_target=1.0 - spec.label_smoothing,
        r1_weight=spec.r1_weight,
        loss_scaling=spec.precision == "mixed_float16",
    )
