"""The learning rate of every step: scaled by the batch, warmed up, along a cosine with restarts.

rate(step) = given rate × batch factor × warm-up(step) × cosine(step) × what alarms have left of it (1, 1/2, 1/4, …)
Source: Loshchilov and Hutter 2017 (SGDR, equation 5 with T_mult = 1 and a lowest rate of 0); Goyal et al. 2017 (warm-up).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras
from keras import ops

from gan_runtime.spec import RunSpec

Tensor = Any


@dataclass(frozen=True)
class RatePlan:
    """The rate as a function of the steps done, in steps. `cycle_steps` 0: no cosine; `warmup_steps` 0: no warm-up."""

    base: float
    warmup_steps: int
    cycle_steps: int

    def rate(self, step: Tensor) -> Tensor:
        """float32 scalar; `step` counts from 0, any tensor or number."""
        step = ops.cast(step, "float32")
        rate = ops.convert_to_tensor(self.base, "float32")
        if self.warmup_steps:
            rate = rate * ops.minimum((step + 1.0) / self.warmup_steps, 1.0)
        if self.cycle_steps:
            within = ops.mod(ops.maximum(step - self.warmup_steps, 0.0), float(self.cycle_steps))
            rate = rate * 0.5 * (1.0 + ops.cos(math.pi * within / self.cycle_steps))
        return rate


def batch_factor(spec: RunSpec) -> float:
    """What the batch size makes of a rate that was given for the reference batch."""
    ratio = spec.batch_size_global / spec.reference_batch
    return {"none": 1.0, "linear": ratio, "sqrt": math.sqrt(ratio)}[spec.learning_rate_scaling]


def rate_plan(spec: RunSpec, network: str, steps_per_epoch: int) -> RatePlan:
    """The plan of one network of the run."""
    given = {"generator": spec.learning_rate_generator, "discriminator": spec.learning_rate_discriminator}[network]
    cycle = spec.restart_epochs * steps_per_epoch if spec.learning_rate_schedule == "cosine_restarts" else 0
    return RatePlan(given * batch_factor(spec), spec.warmup_epochs * steps_per_epoch, cycle)


class StepRate(keras.optimizers.schedules.LearningRateSchedule):  # type: ignore[misc]
    """A plan as a Keras schedule. `updates_per_step`: updates of this network in one step, k for D; `factor()`: see above."""

    def __init__(self, plan: RatePlan, updates_per_step: int, factor: Callable[[], Tensor]) -> None:
        self._plan, self._updates_per_step, self._factor = plan, updates_per_step, factor

    def __call__(self, step: Tensor) -> Tensor:
        """The rate of update number `step`, from 0."""
        return self._plan.rate(step // self._updates_per_step) * self._factor()

    def get_config(self) -> dict[str, Any]:
        """Schedules are made anew from the options of the run, never from a saved optimizer."""
        raise NotImplementedError("a StepRate is made from the options of its run")
