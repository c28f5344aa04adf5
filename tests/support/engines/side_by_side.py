"""Compares both engines: the same weights, rows and noise give the same numbers, gradients, probes
and checkpoints.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.engines import tf_same_noise
from tests.support.engines.jax_process import JaxProcess
from tests.support.engines.parity import Case, rows_of, workload_of
from tests.support.engines.small_engines import (
    assert_close,
    assert_counts_alike,
    assert_moves_alike,
    tf_engine,
)


def assert_engines_agree(case: Case, jax: JaxProcess, patch: pytest.MonkeyPatch) -> None:
    """Compares the steps of a case, a probe and samples after them, and one more step of the
    TensorFlow engine from the JAX checkpoint.
    """
    tf_same_noise.hand_to_engines(patch)
    data, options = rows_of(case), case.spec_options
    engine = tf_engine(workload=workload_of(case), data=data, **options)
    begin = engine.state()
    numbers, states, probe, samples = jax(
        "trained_from", case.workload, data, options, begin, case.steps
    )

    engine.trace()
    engine.mark()
    assert_close(numbers[0], engine.run(case.steps).values, 1e-4)
    assert_moves_alike(begin, states[0], engine.state(), 1e-3, case.unmoved)
    own_probe = engine.probe()
    assert_close(
        {name: np.asarray(value) for name, value in probe.scores.items()}, own_probe.scores, 1e-4
    )
    assert len(own_probe.histograms) == len(probe.histograms)
    for of_jax, of_tensorflow in zip(probe.histograms, own_probe.histograms, strict=True):
        assert_counts_alike(of_jax, of_tensorflow, 1e-3)
    own_samples = engine.sample()
    assert {name: array.shape for name, array in samples.items()} == {
        name: array.shape for name, array in own_samples.items()
    }
    same = [name for name in samples if name not in case.random_arrays]
    assert_close(
        {name: samples[name] for name in same}, {name: own_samples[name] for name in same}, 1e-3
    )

    engine.load(states[0])
    assert_close(numbers[1], engine.run(1).values, 1e-4)
    assert_moves_alike(states[0], states[1], engine.state(), 1e-3, case.unmoved)
