"""Several workers: what they tell each other in each call, and how long each waits for the others.

A call begins with one small all-reduce: wishes to stop, and the seconds that each worker needed for
its own part of a step in the call before. So all workers stop at the same step, and each knows who
is slow. It ends with another one, for the numbers of its steps.

Waiting is the time inside collectives: from the moment a worker's own contribution is ready until
the result is there. The transfer itself is part of it. The stamps only look on; nothing waits for
them. They are taken on the host: on the CPU they are exact, on a GPU they see when work was handed
over, not when it was done (not verified there).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from gan_runtime.engines.contract import WorkerNews, WorkerSeconds
from gan_runtime.spec import RunSpec

Result = TypeVar("Result")


class WaitClock:
    """Stamps begin and end of collectives while a step is traced, for each replica apart:
    each is traced in its own thread.
    """

    def __init__(self, is_on: bool) -> None:
        self._is_on, self._traced = is_on, threading.local()

    def computed(self, own: list[tf.Tensor]) -> None:
        """Says what this replica has computed by itself; collectives before the next call wait from
        when all of it is ready.

        Else the gradients of one network would seem to wait while those of the other are still
        being computed.
        """
        self._traced.own, self._traced.graph = own, tf.compat.v1.get_default_graph()

    def around(self, exchange: Callable[[], Result], own: list[tf.Tensor] | None = None) -> Result:
        """The result of `exchange`, timed from when all of `own` is ready, else all that was
        told to be `computed`.
        """
        if not self._is_on or (own is None and self._is_inside_a_branch()):
            return exchange()
        with tf.control_dependencies(self._traced.own if own is None else own):
            begin = tf.timestamp()
        result = exchange()
        with tf.control_dependencies(tf.nest.flatten(result)):
            self._stamps().append(tf.stack([begin, tf.timestamp()]))
        return result

    def at_the_end(self, numbers: tf.Tensor) -> tf.Tensor:
        """The same numbers, ready only when all is computed: losses are known long before the
        gradients.
        """
        if not self._is_on:
            return numbers
        with tf.control_dependencies(self._traced.own):
            return tf.identity(numbers)

    def take(self) -> tf.Tensor:
        """float64 (collectives, 2): begin and end of those since the last `take`, of the
        replica that is being traced.
        """
        stamps, self._traced.stamps = self._stamps(), []
        return tf.stack(stamps) if stamps else tf.zeros([0, 2], tf.float64)

    def _is_inside_a_branch(self) -> bool:
        """The update under a loss scale is one branch of a condition, whose tensors are not seen
        outside; the exchange of overflows before it has been timed.
        """
        return tf.compat.v1.get_default_graph() is not getattr(self._traced, "graph", None)

    def _stamps(self) -> list[tf.Tensor]:
        if not hasattr(self._traced, "stamps"):
            self._traced.stamps = []
        return self._traced.stamps


NO_CLOCK = WaitClock(is_on=False)


def waited_s(stamps: NDArray[np.float64]) -> float:
    """Seconds covered by the intervals (n, 2).

    Collectives of two networks overlap: what both cover counts once.
    """
    waited, until = 0.0, -np.inf
    for begin, end in stamps[np.argsort(stamps[:, 0])]:
        waited += max(0.0, end - max(begin, until))
        until = max(until, end)
    return float(waited)


class Workers:
    """This worker's side of the exchange.

    `is_one`: there are no others, and nothing is exchanged.
    """

    def __init__(self, spec: RunSpec, strategy: tf.distribute.Strategy) -> None:
        self.is_one = spec.workers == 1
        self._strategy, self._spec = strategy, spec
        self._rank = 0 if self.is_one else strategy.cluster_resolver.task_id
        self._own_s: float | None = (
            None  # None before the first call, 0 after it: that one holds the compiling
        )

    def word(self, stop_wish: bool) -> tf.Tensor:
        """float32 (1 + workers,): what this worker tells, a wish to stop (0 or 1) and its own
        seconds per step in its place.
        """
        told = np.zeros(1 + self._spec.workers, np.float32)
        told[0], told[1 + self._rank] = stop_wish, self._own_s or 0.0
        return tf.constant(told)

    def extremes(self, number: int) -> tuple[int, int]:
        """The lowest and highest of the numbers that the workers tell, below 2^53; must be
        called by all of them.
        """
        if self.is_one:
            return number, number
        told = np.zeros(self._spec.workers, np.float64)
        told[self._rank] = number
        heard = np.rint(
            tf.function(lambda: self.sum(tf.constant(told), NO_CLOCK), autograph=False)().numpy()
        )
        return int(heard.min()), int(heard.max())

    def local(self, value: Any) -> tuple[tf.Tensor, ...]:
        """The copies of this worker's replicas."""
        return self._strategy.experimental_local_results(value)

    def local_mean(self, numbers: Any) -> tf.Tensor:
        """Over this worker's replicas."""
        if self.is_one:
            return self._strategy.reduce(tf.distribute.ReduceOp.MEAN, numbers, axis=None)
        return tf.reduce_mean(tf.stack(self.local(numbers)), axis=0)

    def mean(self, rows: tf.Tensor, clock: WaitClock) -> tf.Tensor:
        """Over all workers, in one exchange for a whole call."""
        return self._exchanged("mean", rows, clock)

    def sum(self, word: tf.Tensor, clock: WaitClock) -> tf.Tensor:
        """All that was told, whoever told it; must be called by all workers, once a call."""
        return self._exchanged("sum", word / self._spec.replicas, clock)

    def _exchanged(self, kind: str, value: tf.Tensor, clock: WaitClock) -> tf.Tensor:
        if self.is_one:
            return value

        def on_replica(own: tf.Tensor) -> tf.Tensor:
            # On the replica's device: a value that was made outside has none, and cannot be
            # reduced.
            return tf.distribute.get_replica_context().all_reduce(kind, tf.identity(own))

        return self.local(
            clock.around(lambda: self._strategy.run(on_replica, args=(value,)), own=[value])
        )[0]

    def news(
        self, heard: tf.Tensor, stamps: tf.Tensor, steps: int, seconds: float
    ) -> WorkerNews | None:
        """What a call of `seconds` has told this worker; None when it is the only one."""
        if self.is_one:
            return None
        wait_s = waited_s(stamps.numpy()) / steps
        own_s = max(0.0, seconds / steps - wait_s)
        self._own_s = 0.0 if self._own_s is None else own_s
        told = heard.numpy()
        return WorkerNews(
            bool(told[0] > 0),
            WorkerSeconds(own_s, wait_s, tuple(float(value) for value in told[1:])),
        )
