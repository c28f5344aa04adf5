"""The TensorFlow engine with a step counter, for a trainer that is stopped and let go between
its host calls.
"""

from __future__ import annotations

from typing import Any

from gan_runtime.engines.contract import StepNumbers
from gan_runtime.engines.tf.engine import TfEngine


class CountedEngine(TfEngine):
    """`steps_run`: steps of all engines in this process so far."""

    steps_run = 0

    def run(self, steps: int, *further: Any) -> StepNumbers:
        """Runs steps as the engine does, and counts them."""
        numbers = super().run(steps, *further)
        CountedEngine.steps_run += steps
        return numbers


ENGINE = CountedEngine
