"""The part of a spec that workloads read."""

from __future__ import annotations

from gan_runtime.spec import RunSpec
from gan_runtime.workloads.contract import Objective


def objective_of(spec: RunSpec) -> Objective:
    """What the networks of a run are trained towards."""
    own = spec.of_workload
    return Objective(
        generator_loss=own.generator_loss,
        updates=own.updates,
        discriminator_steps=own.discriminator_steps,
        real_target=1.0 - own.label_smoothing,
        r1_weight=own.r1_weight,
        loss_scaling=spec.precision == "mixed_float16",
    )
