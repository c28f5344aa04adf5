"""The step that a training loop repeats, and the two loops.

`CustomLoop` makes many steps inside one tf.function, with one host call for all. `KerasLoop` is
Keras' built-in loop. Both repeat the same step on the same rows, so they compute the same.
"""

from __future__ import annotations

import inspect
import time
from typing import Any, Protocol

import keras
import numpy as np
import tensorflow as tf

from gan_runtime.engines.contract import StepNumbers
from gan_runtime.engines.tf.inputs import Rows
from gan_runtime.engines.tf.state import NetworkState
from gan_runtime.engines.tf.step import TfReplicaStep
from gan_runtime.engines.tf.strategy import WaitClock, Workers
from gan_runtime.spec import RunSpec


class WholeStep:
    """A step on one replica: the updates of the program, then the moving average. Called in replica
    context.
    """

    def __init__(self, step: TfReplicaStep, state: NetworkState, ema_decay: float) -> None:
        """`ema_decay`: 0 means no moving average."""
        self._step, self._state, self._ema_decay = step, state, ema_decay

    def __call__(self, rows: Rows, step: tf.Tensor) -> tf.Tensor:
        """Trains on this replica's stored rows; returns float32 (metrics,). `step`:
        int32 from 0.
        """
        numbers = self._step(rows, step)
        if self._ema_decay:
            with tf.control_dependencies([numbers]):
                self._state.follow_average(self._ema_decay)
        return numbers

    @property
    def metrics(self) -> list[str]:
        """The order of the numbers; empty until the step is traced."""
        return self._step.metrics


class Loop(Protocol):
    """Repeats steps. `batches`: of `inputs.distributed_batches`; a step takes one per replica."""

    def traced(self, batches: Any, first_step: int) -> Any:
        """The graph of the training call; built once, not run."""
        ...

    def run(self, batches: Any, first_step: int, steps: int, stop_requested: bool) -> StepNumbers:
        """Trains `steps` steps after `first_step`; returns when their numbers are on the host."""
        ...


class CustomLoop:
    """A loop on tf.distribute, with messages between workers, and local steps of replicas."""

    def __init__(
        self,
        spec: RunSpec,
        strategy: tf.distribute.Strategy,
        step: WholeStep,
        state: NetworkState,
        workers: Workers,
        clock: WaitClock,
    ) -> None:
        self._strategy, self._whole_step, self._state = strategy, step, state
        self._workers, self._clock, self._sync_every_steps = workers, clock, spec.sync_every_steps
        # Without AutoGraph: it takes seconds, and conditions on tensors are written out here.
        self._call = tf.function(self._train_call, reduce_retracing=True, autograph=False)

    def traced(self, batches: Any, first_step: int) -> Any:
        """The graph of the training call."""
        return self._call.get_concrete_function(
            batches, *_counters(first_step, 1), self._workers.message(False)
        )

    def run(self, batches: Any, first_step: int, steps: int, stop_requested: bool) -> StepNumbers:
        """One host call for all steps; metric → float32 (steps,), the mean over the replicas."""
        begin = time.perf_counter()
        message = self._workers.message(stop_requested)
        rows, stamps, messages = self._call(batches, *_counters(first_step, steps), message)
        numbers = rows.numpy()
        values = {
            metric: numbers[:, column] for column, metric in enumerate(self._whole_step.metrics)
        }
        seconds = time.perf_counter() - begin
        return StepNumbers(values, seconds, self._workers.status(messages, stamps, steps, seconds))

    def _train_call(
        self, iterator: Any, first_step: tf.Tensor, steps: tf.Tensor, message: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Returns the numbers, float32 (steps, metrics); begin and end of all collectives, float64
        (n, 2); and the messages of all workers.
        """
        messages = self._workers.sum(message, self._clock)

        def one_step(
            index: tf.Tensor, rows: tf.TensorArray, stamps: tf.TensorArray
        ) -> tuple[tf.Tensor, tf.TensorArray, tf.TensorArray]:
            numbers, own_stamps = self._step_everywhere(iterator, first_step + index)
            return index + 1, rows.write(index, numbers), stamps.write(index, own_stamps)

        tables = tf.TensorArray(tf.float32, size=steps), tf.TensorArray(tf.float64, size=steps)
        _, rows, stamps = tf.while_loop(
            lambda index, *_: index < steps,
            one_step,
            (tf.constant(0), *tables),
            maximum_iterations=steps,
        )
        mean = self._workers.mean(rows.stack(), self._clock)
        all_stamps = tf.concat([tf.reshape(stamps.stack(), [-1, 2]), self._clock.take()], axis=0)
        return mean, all_stamps, messages

    def _step_everywhere(self, iterator: Any, step: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns float32 (metrics,), the mean over this worker's replicas, and the stamps of its
        first replica and of later collectives, (collectives, 2).
        """
        numbers, own_stamps = self._strategy.run(
            self._replica_step, args=(iterator.get_next(), step)
        )
        local = self._workers.local_mean(numbers)
        if self._sync_every_steps > 1:
            self._average_when_due(step + 1, local)
        return local, tf.concat([self._workers.local(own_stamps)[0], self._clock.take()], axis=0)

    def _replica_step(self, rows: Rows, step: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns float32 (metrics,), and the stamps of the step's collectives."""
        return self._whole_step(rows, step), self._clock.take()

    def _average_when_due(self, steps_done: tf.Tensor, numbers: tf.Tensor) -> None:
        """Ends a series of local steps if it is due. `numbers`: of the last step."""
        is_due = steps_done % self._sync_every_steps == 0

        def average() -> tf.Tensor:
            self._strategy.run(self._state.average_everything)
            return tf.constant(True)

        self._clock.timed(
            lambda: tf.cond(is_due, average, lambda: tf.constant(False)), results=[numbers]
        )


def _counters(first_step: int, steps: int) -> tuple[tf.Tensor, tf.Tensor]:
    return tf.constant(first_step, tf.int32), tf.constant(steps, tf.int32)


# ----------------------------------------------------------------------
# Keras' built-in training logic around the same step: a Model with a `train_step`, run by Keras'
# own train function.
#
# It differs from the custom loop as Keras does: one host call per step, as in `fit`; Keras runs
# `train_step` on the replicas and takes the mean of each number separately; a batch comes with the
# number of its step. Source: keras.src.backend.tensorflow.trainer, Keras 3.15.

# The tf.function within Keras' train function. Keras has no public way to build its graph without
# running it. Keras is pinned, and tests/engines/test_tf_loops.py counts the operations of that
# graph.
TRACED_FUNCTION = "multi_step_on_iterator"


class SteppedModel(keras.Model):  # type: ignore[misc]
    """A GAN whose updates are a `train_step`. Built in the scope of the strategy, which
    Keras uses.
    """

    def __init__(self, step: WholeStep) -> None:
        super().__init__()
        self._whole_step = step

    def train_step(self, data: tuple[Rows, tf.Tensor]) -> dict[str, tf.Tensor]:
        """`data`: this replica's stored rows and the number of the step.

        Returns metric → float32 ().
        """
        numbers = self._whole_step(*data)
        return dict(zip(self._whole_step.metrics, tf.unstack(numbers), strict=True))


class KerasLoop:
    """A loop for one worker. `batches`: with the number of their step."""

    def __init__(self, step: WholeStep) -> None:
        model = SteppedModel(step)
        # No optimizer: each network has its own. No jit_compile: Keras has none under a strategy;
        # with xla=jit the step itself compiles.
        model.compile(optimizer=None, jit_compile=False)
        model.make_train_function()
        self.train_function = model.train_function
        self._traced_function = inspect.getclosurevars(model.train_function).nonlocals[
            TRACED_FUNCTION
        ]

    def traced(self, batches: Any, first_step: int) -> Any:  # noqa: ARG002
        """The graph of one step."""
        return self._traced_function.get_concrete_function(batches)

    def run(self, batches: Any, first_step: int, steps: int, stop_requested: bool) -> StepNumbers:  # noqa: ARG002
        """One host call for each step; metric → float32 (steps,), the mean over the replicas."""
        begin = time.perf_counter()
        logs = [self.train_function(batches) for _ in range(steps)]
        values = {
            metric: np.asarray([log[metric] for log in logs], np.float32) for metric in logs[0]
        }
        return StepNumbers(values, time.perf_counter() - begin)
