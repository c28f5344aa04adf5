"""Optimizer parts that both engines share: constants without an option, RMSprop, and the
learning-rate schedule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from gan_runtime.engines.task import RatePlan

RMSPROP_RHO = 0.9  # as in Keras and in CERN's 3DGAN
# Micikevicius et al. 2018: the loss scale doubles after this many steps without overflow.
LOSS_SCALE_GROWTH_STEPS = 2000
Tensor = Any


class RMSprop(keras.optimizers.RMSprop):
    """Tieleman and Hinton 2012; g is the gradient, v the mean of its square, ε 1e-7:

    v ← ρ v + (1 - ρ) g²
    w ← w - rate · g / √(v + ε)      epsilon "inside" the root (Keras 3)
    w ← w - rate · g / (√v + ε)      "outside" (TensorFlow 2)
    """

    def __init__(self, epsilon_place: str, **options: Any) -> None:
        super().__init__(**options)
        self._epsilon_place = epsilon_place

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        if self._epsilon_place == "inside":
            super().update_step(gradient, variable, learning_rate)
            return
        rate, gradient = (ops.cast(value, variable.dtype) for value in (learning_rate, gradient))
        velocity = self._velocities[self._get_variable_index(variable)]
        self.assign(velocity, self.rho * velocity + (1 - self.rho) * ops.square(gradient))
        self.assign_sub(variable, rate * gradient / (ops.sqrt(velocity) + self.epsilon))


class StepRate(keras.optimizers.schedules.LearningRateSchedule):  # type: ignore[misc]
    """A rate plan as a Keras schedule, computed on the device in float32.

    `updates_per_step`: updates of this network per step. `factor()`: factor by which roll-backs
    have lowered the rate (1, 1/2, 1/4, …).
    """

    def __init__(self, plan: RatePlan, updates_per_step: int, factor: Callable[[], Tensor]) -> None:
        self._plan, self._updates_per_step, self._factor = plan, updates_per_step, factor

    def __call__(self, step: Tensor) -> Tensor:
        """The rate of update number `step`, from 0."""
        return (
            self._plan.rate(ops.cast(step // self._updates_per_step, "float32"), ops)
            * self._factor()
        )

    def get_config(self) -> dict[str, Any]:
        """Unsupported, since a schedule follows from the options of its run."""
        raise NotImplementedError("make a StepRate from the options of its run")
