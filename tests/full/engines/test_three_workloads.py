"""The conditional DCGAN, the dense GAN and the guide's WGAN-GP on each engine: replicas agree, and
a stop changes nothing. test_jax_parity.py compares the engines.
"""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from gan_runtime import catalog
from tests.support.engines.jax_process import JaxProcess
from tests.support.engines.small_engines import (
    assert_close,
    assert_equal,
    assert_moves_alike,
    tf_engine,
)
from tests.support.engines.three_ways import AFTER, CASES, Case, ThreeWays, three_ways

ENGINES = ("tensorflow", "jax")
pytestmark = pytest.mark.usefixtures("cores", "with_the_guides")


@pytest.fixture(scope="module", params=CASES)
def workload(request: pytest.FixtureRequest) -> str:
    """One of the three workloads."""
    return str(request.param)


@pytest.fixture(scope="module", params=ENGINES)
def ways(
    request: pytest.FixtureRequest,
    workload: str,
    jax: JaxProcess,
    tmp_path_factory: pytest.TempPathFactory,
) -> ThreeWays:
    """The workload trained three ways on one of the engines."""
    folder = tmp_path_factory.mktemp("checkpoints")
    if request.param == "jax":
        return jax("trained_three_ways", workload, str(folder))
    return of_tensorflow(workload, CASES[workload], folder)


def of_tensorflow(workload: str, case: Case, folder: Path) -> ThreeWays:
    implementation = importlib.import_module(catalog.WORKLOADS[workload].module).WORKLOAD
    return three_ways(
        lambda replicas: tf_engine(replicas, implementation, data=case.data, **case.options), folder
    )


def test_two_replicas_match_one_on_the_whole_batch(ways: ThreeWays, workload: str) -> None:
    assert_close(ways.shared.numbers, ways.alone.numbers, 1e-5)
    assert_close(ways.shared.state, ways.alone.state, 1e-5)
    # Relative to the change of each weight: without one share of the gradient, the error would be
    # half of it.
    assert_moves_alike(
        ways.begin, ways.shared.state, ways.alone.state, 1e-3, CASES[workload].unmoved
    )


def test_resumed_run_matches_an_uninterrupted_one_exactly(
    ways: ThreeWays,
) -> None:
    assert_equal(
        ways.resumed.numbers,
        {name: values[-AFTER:] for name, values in ways.shared.numbers.items()},
    )
    assert_equal(ways.resumed.state, ways.shared.state)
