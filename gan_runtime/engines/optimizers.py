"""What the optimizers of every engine share: constants that no option sets, RMSprop, and the
rate of each step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from gan_runtime.engines.rates import RatePlan

RMSPROP_RHO = 0.9  # as in Keras and in CERN's 3DGAN
LOSS_SCALE_GROWTH_STEPS = (
    2000  # Micikevicius et al. 2018: doubled after so many steps without overflow
)


# ----------------------------------------------------------------------
# RMSprop with its epsilon inside or outside of the square root, for every engine.


class RMSprop(keras.optimizers.RMSprop):
    """Tieleman and Hinton 2012; g is the gradient, v the mean of its square, ε 1e-7:

    v ← ρ v + (1 - ρ) g²,  w ← w - rate · g / √(v + ε) inside (Keras 3), w ← w - rate · g / (√v + ε)
    outside (TensorFlow 2)
    """

    def __init__(self, epsilon_place: str, **options: Any) -> None:
        super().__init__(**options)
        self._epsilon_place = epsilon_place

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """One weight by its gradient."""
        if self._epsilon_place == "inside":
            super().update_step(gradient, variable, learning_rate)
            return
        rate, gradient = (ops.cast(value, variable.dtype) for value in (learning_rate, gradient))
        velocity = self._velocities[self._get_variable_index(variable)]
        self.assign(velocity, self.rho * velocity + (1 - self.rho) * ops.square(gradient))
        self.assign_sub(variable, rate * gradient / (ops.sqrt(velocity) + self.epsilon))


# ----------------------------------------------------------------------
# A rate plan (rates.py) as Keras' optimizers want it, computed on the device in float32.
#
# Alarms may lower it: rate(step) = what the plan says × what alarms have left of it (1, 1/2, 1/4,
# …).

Tensor = Any


class StepRate(keras.optimizers.schedules.LearningRateSchedule):  # type: ignore[misc]
    """A plan as a Keras schedule.

    `updates_per_step`: updates of this network in one step; `factor()`: see above.
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
        """Schedules are made anew from the options of the run, never from a saved optimizer."""
        raise NotImplementedError("a StepRate is made from the options of its run")
