"""Both engines read the images in the same order."""

from __future__ import annotations

import time

import numpy as np
import pytest
import tensorflow as tf

from gan_runtime.engines.inputs import RowOrder, epoch_order, philox
from gan_runtime.engines.task import StepPlan

pytestmark = pytest.mark.usefixtures("cores")  # before TensorFlow starts its devices


def test_philox_matches_the_published_test_vectors() -> None:
    zeros, ones = np.zeros((4, 1), np.uint64), np.full((4, 1), 0xFFFFFFFF, np.uint64)
    assert [hex(word) for word in philox(zeros, (0, 0))[:, 0]] == [
        "0x6627e8d5",
        "0xe169c58d",
        "0xbc57ac4c",
        "0x9b00dbd8",
    ]
    words = philox(ones, (0xFFFFFFFF, 0xFFFFFFFF))[:, 0]
    assert [hex(word) for word in words] == ["0x408f276d", "0x41c83b0e", "0xa20bc7c6", "0x6d5451fd"]


@pytest.mark.parametrize(
    ("seed", "epoch", "count"), [(1, 0, 10), (7, 3, 1797), (2**31 - 1, 9_999, 1001), (1, 0, 1)]
)
def test_epoch_order_matches_tensorflow_shuffle(seed: int, epoch: int, count: int) -> None:
    expected = tf.random.experimental.stateless_shuffle(
        tf.range(count), seed=tf.constant([seed, epoch], tf.int64)
    )
    assert epoch_order(seed, epoch, count).tolist() == expected.numpy().tolist()


def test_epoch_order_of_mnist_takes_under_a_second() -> None:
    begin = time.perf_counter()
    assert sorted(epoch_order(1, 0, 60_000)) == list(range(60_000))
    assert time.perf_counter() - begin < 1.0


def test_each_step_takes_the_next_rows_and_an_epoch_drops_the_rest() -> None:
    order = RowOrder(1, StepPlan(batches=2, batch_size_global=4, rows=20, updates={}))
    rows = order.rows(first_step=1, steps=2)
    assert rows.shape == (2, 2, 4)
    assert rows[0].ravel().tolist() == epoch_order(1, 0, 20)[8:16].tolist()
    assert rows[1].ravel().tolist() == epoch_order(1, 1, 20)[:8].tolist(), (
        "20 images are 2 steps of 8"
    )
