"""Assertions that `make test` runs on networks of a few hundred weights, and tests/full on larger
ones or with more options.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from gan_runtime.engines.tf.engine import TfEngine
from tests.support.engines.jax_process import JaxProcess
from tests.support.engines.small_engines import MakeEngine, assert_close, copies_by_name, trained


def assert_eight_devices_compute_what_one_does(
    workload: str, images: np.ndarray, options: dict[str, Any], jax: JaxProcess
) -> None:
    """`images` is one batch.

    With more, each device's gradients at the end of an epoch come from images of its own share.
    """
    options = {**options, "batch_size_global": len(images)}
    single = jax("trained_without_dropout", workload, images, (1, 2), options)
    eight = jax("trained_without_dropout", workload, images, (1, 2), {**options, "replicas": 8})
    assert_close(eight[0], single[0], 1e-5)
    assert_close(eight[1], single[1], 1e-5)
    probed = [
        {name: np.asarray(value) for name, value in outcome[2].items()}
        for outcome in (eight, single)
    ]
    # The spread is compared with one that uses the batch norm of each device's own images.
    for scores, (_, _, _, spread) in zip(probed, (eight, single), strict=True):
        assert scores.pop("spread_fake") == pytest.approx(spread, rel=1e-3)
        assert spread > 1e-4
    assert_close(*probed, 1e-3)


def assert_goes_on_where_the_state_stood(
    first: TfEngine, second: TfEngine, tolerance: float
) -> None:
    """Takes two new engines with the same options; the second loads the state of the first."""
    trained(first, 1)
    first.slow_down(0.5)
    state = first.state()
    second.load(state)
    expected, resumed = first.run(2).values, trained(second, 2)
    assert_close(resumed, expected, tolerance)
    assert_close(second.state(), first.state(), tolerance)
    assert np.abs(second.sample()["images"] - first.sample()["images"]).max() <= max(
        tolerance, 1e-6
    )


def assert_clipped_steps_are_those_of_one_replica(make: MakeEngine, further: Iterable[int]) -> None:
    """Checks both networks on each of these numbers of replicas."""
    rates = {"learning_rate_generator": 1.0, "learning_rate_discriminator": 1.0}
    steps = []
    for replicas in (1, *further):
        engine = make(replicas, optimizer="sgd", clip_norm=0.05, **rates)
        before = engine.state()
        trained(engine, 1)
        steps.append({name: values - before[name] for name, values in engine.state().items()})
        for network in ("generator", "discriminator"):
            arrays = [
                values for name, values in steps[-1].items() if name.startswith(f"{network}/")
            ]
            assert np.sqrt(sum(np.sum(np.square(values)) for values in arrays)) == pytest.approx(
                0.05, rel=1e-4
            )
        assert_close(steps[-1], steps[0], 1e-6)


def assert_replicas_become_their_mean_every_third_step(
    make: MakeEngine, options: dict[str, Any]
) -> None:
    """Until then each replica trains alone."""
    engine, alone = (make(2, sync_every_steps=steps, **options) for steps in (3, 5))
    trained(engine, 2)
    trained(alone, 3)
    for name, (first, second) in copies_by_name(engine).items():
        if np.issubdtype(first.dtype, np.floating) and name != "rate_factor":
            assert not np.array_equal(first, second), name
    engine.run(1)
    before = copies_by_name(alone)
    for name, (first, second) in copies_by_name(engine).items():
        assert np.array_equal(first, second), name
        if np.issubdtype(first.dtype, np.floating):
            assert np.abs(first - (before[name][0] + before[name][1]) / 2).max() < 1e-7, name
