"""Batches of three fields and a program of four phases in the TensorFlow engine, with accumulation
and on two replicas.
"""

from __future__ import annotations

from typing import Any

import pytest

from gan_runtime.engines.tf.engine import TfEngine
from tests.support.engines.conditional_gan import CONDITIONAL_GAN
from tests.support.engines.showers import random_showers
from tests.support.engines.small_engines import (
    MakeEngine,
    Streamed,
    assert_close,
    assert_equal,
    trained,
)

pytestmark = pytest.mark.usefixtures("cores")
SHOWERS = random_showers(40)


def conditional(make: MakeEngine, replicas: int = 1, **options: Any) -> TfEngine:
    return make(replicas, CONDITIONAL_GAN, data=SHOWERS, **options)


def test_three_field_batches_train_alike_in_parts_and_on_two_replicas(
    make: MakeEngine,
) -> None:
    whole = conditional(make)
    expected = trained(whole, 3)
    for other in (
        conditional(make, accumulation_steps=4),
        conditional(make, 2, accumulation_steps=2),
    ):
        assert_close(trained(other, 3), expected, 1e-5)
        assert_close(other.state(), whole.state(), 1e-5)


def test_three_field_run_resumes_exactly(make: MakeEngine) -> None:
    first, second = conditional(make, ema_decay=0.9), conditional(make, ema_decay=0.9, seed=1)
    trained(first, 1)
    second.load(first.state())
    assert_equal(trained(second, 2), first.run(2).values)  # into the second epoch
    assert_equal(second.state(), first.state())


@pytest.mark.parametrize("replicas", [1, 2])
def test_streamed_rows_train_exactly_like_resident_ones(make: MakeEngine, replicas: int) -> None:
    resident = conditional(make, replicas)
    streamed = make(replicas, CONDITIONAL_GAN, data=Streamed(SHOWERS))
    expected = trained(resident, 1, 3)
    assert_equal(trained(streamed, 1, 3), expected)
    assert_equal(streamed.state(), resident.state())
