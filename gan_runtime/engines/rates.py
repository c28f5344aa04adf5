"""The learning rate of every step: scaled by the batch, warmed up, along a cosine with restarts.

rate(step) = option × batch factor × warm-up(step) × cosine(step)
Sources: Loshchilov and Hutter 2017 (SGDR, equation 5 with T_mult = 1 and a lowest rate of 0); Goyal
et al. 2017 (warm-up).

Loads no framework: the trainer computes the formula with keras.ops (optimizers.py), the Launch page
with numpy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gan_runtime.spec import RunSpec


@dataclass(frozen=True)
class RatePlan:
    """The rate as a function of the steps done.

    `cycle_steps` 0: no cosine; `warmup_steps` 0: no warm-up.
    """

    base: float
    warmup_steps: int
    cycle_steps: int

    def rate(self, step: Any, ops: Any) -> Any:
        """The rate after `step` steps, a float, array or tensor; `ops`: numpy or keras.ops.

        A constant plan gives one number.
        """
        rate = self.base
        if self.warmup_steps:
            rate = rate * ops.minimum((step + 1.0) / self.warmup_steps, 1.0)
        if self.cycle_steps:
            within = ops.mod(ops.maximum(step - self.warmup_steps, 0.0), float(self.cycle_steps))
            rate = rate * 0.5 * (1.0 + ops.cos(math.pi * within / self.cycle_steps))
        return rate

    @property
    def is_constant(self) -> bool:
        """Neither warm-up nor cosine."""
        return not self.warmup_steps and not self.cycle_steps


def batch_factor(spec: RunSpec) -> float:
    """The factor on a rate that an option states for the reference batch."""
    ratio = spec.batch_size_global / spec.reference_batch
    return {"none": 1.0, "linear": ratio, "sqrt": math.sqrt(ratio)}[spec.learning_rate_scaling]


def rate_plan(spec: RunSpec, network: str, steps_per_epoch: int) -> RatePlan:
    """The plan of one network of the run."""
    cycle = (
        spec.restart_epochs * steps_per_epoch
        if spec.learning_rate_schedule == "cosine_restarts"
        else 0
    )
    return RatePlan(
        spec.learning_rate(network) * batch_factor(spec),
        spec.warmup_epochs * steps_per_epoch,
        cycle,
    )


def rate_curves(spec: RunSpec, steps_per_epoch: int, points: int = 400) -> dict[str, np.ndarray]:
    """The rates over a whole run, for a chart: columns `epoch` (from 0) and one for each network.

    About `points` steps, and both sides of every restart, so that its edge is vertical.
    """
    plans = {
        network.name: rate_plan(spec, network.name, steps_per_epoch)
        for network in spec.entry.networks
    }
    last = spec.epochs * steps_per_epoch - 1
    plan = next(iter(plans.values()))  # warm-up and cycle are the same for all
    restarts = (
        np.arange(plan.warmup_steps, last, plan.cycle_steps)[:points]
        if plan.cycle_steps
        else np.array([plan.warmup_steps])
    )
    steps = np.concatenate([np.linspace(0, last, points), restarts, restarts - 1])
    steps = np.unique(np.clip(np.round(steps), 0, last))
    rates = {network: plan.rate(steps, np) * np.ones(len(steps)) for network, plan in plans.items()}
    return {"epoch": steps / steps_per_epoch, **rates}
