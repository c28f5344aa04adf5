"""Keras' built-in training logic around the same step: a Model with a `train_step`, run by Keras' own train function.

What differs from the loop of our own, and all of it is as Keras has it: the host asks for each step by itself, as `fit` does;
Keras runs `train_step` on the replicas and takes the mean of each of its numbers apart; a batch brings the number of its step along.
Source: keras.src.backend.tensorflow.trainer, Keras 3.15.
"""

from __future__ import annotations

import inspect
import time
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from gan_runtime.engines.contract import StepNumbers
from gan_runtime.engines.tf.loops import WholeStep
from gan_runtime.engines.tf.values import Rows

# The tf.function within Keras' train function. There is no public way to build its graph without running it; Keras is pinned,
# and tests/engines/test_tf_loops.py counts the operations of that graph.
TRACED_FUNCTION = "multi_step_on_iterator"


class SteppedModel(keras.Model):  # type: ignore[misc]
    """A GAN whose updates are a `train_step`. To be made under the strategy, which Keras then trains it with."""

    def __init__(self, step: WholeStep) -> None:
        super().__init__()
        self._whole_step = step

    def train_step(self, data: tuple[Rows, tf.Tensor]) -> dict[str, tf.Tensor]:
        """`data`: this replica's stored rows and the number of the step. Returns metric → float32 ()."""
        numbers = self._whole_step(*data)
        return dict(zip(self._whole_step.metrics, tf.unstack(numbers), strict=True))


class KerasLoop:
    """See `loops.Loop`. `batches` are numbered; one worker."""

    def __init__(self, step: WholeStep) -> None:
        model = SteppedModel(step)
        # No optimizer: each network has its own. No jit_compile: Keras has none under a strategy by itself; with xla=jit the step
        # compiles what XLA can.
        model.compile(optimizer=None, jit_compile=False)
        model.make_train_function()
        self.train_function = model.train_function
        self._traced_function = inspect.getclosurevars(model.train_function).nonlocals[TRACED_FUNCTION]

    def traced(self, batches: Any, first_step: int) -> Any:  # noqa: ARG002
        """The graph of one step."""
        return self._traced_function.get_concrete_function(batches)

    def run(self, batches: Any, first_step: int, steps: int, stop_wish: bool) -> StepNumbers:  # noqa: ARG002
        """One host call for each step; metric → float32 (steps,), the mean over the replicas."""
        begin = time.perf_counter()
        logs = [self.train_function(batches) for _ in range(steps)]
        values = {metric: np.asarray([log[metric] for log in logs], np.float32) for metric in logs[0]}
        return StepNumbers(values, time.perf_counter() - begin)
