"""The order of the rows of each epoch, without TensorFlow: the same as its `stateless_shuffle`
gives, so that a run sees the same batches on every engine.

Random words are Philox4x32-10 (Salmon et al. 2011), the shuffle is that of Fisher and Yates,
forwards; the key is made of (seed, epoch) as TensorFlow's stateless operations make it.
tests/engines/test_image_order.py compares with TensorFlow itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gan_runtime.engines.task import StepPlan

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
SCRAMBLE_KEY = (0x3EC8F720, 0x02461E29)
LOW = 0xFFFFFFFF  # 32 bits


def epoch_order(seed: int, epoch: int, count: int) -> NDArray[np.int32]:
    """A permutation of 0 to count - 1, int32 (count,); `epoch` counts from 0."""
    seeds = np.array([seed & LOW, seed >> 32, epoch & LOW, epoch >> 32], np.uint64)
    mixed = philox(seeds[:, None], SCRAMBLE_KEY)[:, 0]
    blocks = -(-count // 4)
    counters = np.zeros((4, blocks), np.uint64)
    counters[0] = np.arange(blocks)
    counters[2], counters[3] = mixed[2], mixed[3]
    words = philox(counters, (int(mixed[0]), int(mixed[1]))).T.reshape(-1)
    order = list(range(count))
    for place, word in enumerate(words[: count - 1].tolist()):
        other = place + word % (count - place)
        order[place], order[other] = order[other], order[place]
    return np.array(order, np.int32)


def philox(counters: NDArray[np.uint64], key: tuple[int, int]) -> NDArray[np.uint64]:
    """Four words of 32 bits for each counter of four words: (4, n) → (4, n)."""
    first, second, third, fourth = counters
    for number in range(ROUNDS):
        keys = [(part + number * step) & LOW for part, step in zip(key, KEY_STEPS, strict=True)]
        high, low = _product(MULTIPLIERS[0], first)
        other_high, other_low = _product(MULTIPLIERS[1], third)
        first, second, third, fourth = (
            other_high ^ second ^ keys[0],
            other_low,
            high ^ fourth ^ keys[1],
            low,
        )
    return np.stack([first, second, third, fourth])


def _product(
    factor: int, words: NDArray[np.uint64]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Upper and lower half of a product of 32-bit words."""
    product = words * np.uint64(factor)
    return product >> np.uint64(32), product & np.uint64(LOW)


class RowOrder:
    """Which rows of the training set each step sees. Keeps the order of one epoch."""

    def __init__(self, seed: int, plan: StepPlan) -> None:
        self._seed, self._plan = seed, plan
        self._epoch = -1
        self._rows: NDArray[np.int32] = np.zeros((0,), np.int32)

    def rows(self, first_step: int, steps: int) -> NDArray[np.int32]:
        """int32 (steps, batches of real rows per step, batch_size_global) of the steps from
        `first_step`, 0-based.
        """
        return np.stack([self._step(first_step + index) for index in range(steps)])

    def prepare(self, step: int) -> None:
        """Makes the order of that step's epoch, which takes a moment, while the device is at
        work.
        """
        self._step(step)

    def _step(self, number: int) -> NDArray[np.int32]:
        plan, steps = self._plan, self._plan.steps_per_epoch
        epoch, step = divmod(number, steps)
        if epoch != self._epoch:
            order = epoch_order(self._seed, epoch, plan.rows)[: steps * plan.rows_per_step]
            self._rows = order.reshape(steps, plan.batches, plan.batch_size_global)
            self._epoch = epoch
        return self._rows[step]
