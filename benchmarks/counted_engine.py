"""The TensorFlow engine with a step counter, for a trainer that pauses between host calls."""

from __future__ import annotations

from typing import Any

from gan_runtime.engines.contract import StepNumbers
from gan_runtime.engines.tf.engine import TfEngine


class CountedEngine(TfEngine):
    """`steps_run`: steps of all engines in this process."""

    steps_run = 0

    def run(self, steps: int, *arguments: Any) -> StepNumbers:
        """Runs the steps and counts them."""
        numbers = super().run(steps, *arguments)
        CountedEngine.steps_run += steps
        return numbers


ENGINE = CountedEngine
