"""A rate plan (rates.py) as Keras' optimizers want it, computed on the device in float32.

Alarms may lower it: rate(step) = what the plan says × what alarms have left of it (1, 1/2, 1/4, …).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from gan_runtime.engines.rates import RatePlan

Tensor = Any


class StepRate(keras.optimizers.schedules.LearningRateSchedule):  # type: ignore[misc]
    """A plan as a Keras schedule. `updates_per_step`: updates of this network in one step; `factor()`: see above."""

    def __init__(self, plan: RatePlan, updates_per_step: int, factor: Callable[[], Tensor]) -> None:
        self._plan, self._updates_per_step, self._factor = plan, updates_per_step, factor

    def __call__(self, step: Tensor) -> Tensor:
        """The rate of update number `step`, from 0."""
        return self._plan.rate(ops.cast(step // self._updates_per_step, "float32"), ops) * self._factor()

    def get_config(self) -> dict[str, Any]:
        """Schedules are made anew from the options of the run, never from a saved optimizer."""
        raise NotImplementedError("a StepRate is made from the options of its run")
