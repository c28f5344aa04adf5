"""Keras' built-in loop and the custom one, on showers."""

from __future__ import annotations

import numpy as np
import pytest

from gan_runtime.domains.showers import workload
from gan_runtime.engines.contract import Arrays
from tests.support.engines.small_engines import MakeEngine, assert_equal, trained
from tests.support.engines.small_showers import small_showers

pytestmark = pytest.mark.usefixtures("cores")


def longest_move(before: Arrays, after: Arrays) -> float:
    """Returns the largest change of a weight."""
    return max(
        float(np.abs(after[name] - before[name]).max()) for name in before if "kernel" in name
    )


def test_both_loops_train_showers_alike(make: MakeEngine) -> None:
    """Four updates per step, two networks with batch norm, on a grid of a few cells."""
    options = {"data": small_showers(16), "latent_size": 8}
    custom, keras = (
        make(1, workload.WORKLOAD, loop=name, **options) for name in ("custom", "keras")
    )
    begin = custom.state()
    assert_equal(trained(keras, 3), trained(custom, 3))
    assert_equal(keras.state(), custom.state())
    assert longest_move(begin, keras.state()) > 1e-3
