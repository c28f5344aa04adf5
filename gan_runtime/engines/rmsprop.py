"""RMSprop with its epsilon inside or outside of the square root, for every engine."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops


class RMSprop(keras.optimizers.RMSprop):
    """Tieleman and Hinton 2012; g is the gradient, v the mean of its square, ε 1e-7:

    v ← ρ v + (1 - ρ) g²,  w ← w - rate · g / √(v + ε) inside (Keras 3), w ← w - rate · g / (√v + ε) outside (TensorFlow 2)
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
