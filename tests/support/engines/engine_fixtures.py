"""Fixtures for engine tests: one process has several engines, while a trainer has only one.

TensorFlow is loaded when a test needs it; tests of the JAX engine do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.support import guide
from tests.support.engines import small_engines
from tests.support.engines.engine_pool import Borrower
from tests.support.engines.small_engines import MakeEngine


@pytest.fixture
def new_group() -> Callable[[], None]:
    """As `small_engines.new_group`."""
    return small_engines.new_group


@pytest.fixture
def as_on_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulated cores exchange by collectives, and each replica updates its own copy."""
    import tensorflow as tf

    from gan_runtime.engines.tf import strategy as tf_strategy

    monkeypatch.setattr(tf_strategy, "SharedMemoryMirroredStrategy", tf.distribute.MirroredStrategy)


@pytest.fixture(params=["in one memory", "as on GPUs"])
def exchange(request: pytest.FixtureRequest) -> None:
    """Both ways to exchange and update."""
    if request.param == "as on GPUs":
        request.getfixturevalue("as_on_gpus")


@pytest.fixture
def make() -> Iterator[MakeEngine]:
    """As `small_engines.tf_engine`; engines with the same options are built once per process
    (`engine_pool`).
    """
    borrower = Borrower()
    yield borrower.take
    borrower.give_back()


@pytest.fixture(scope="module")
def with_the_guides(cores: int) -> Iterator[None]:  # noqa: ARG001
    """Adds the workload of docs/adding-a-workload.md to the catalog of this process, as in the JAX
    process.
    """
    guide.take_in()
    yield
    guide.take_out()
