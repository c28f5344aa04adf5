"""Engines of the tests: several of them live in one process, where a trainer has only one.

TensorFlow is loaded when a test wants it: those of the JAX engine do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gan_runtime.data.contract import DataSet, picture_set
from gan_runtime.spec import RunSpec
from gan_runtime.workloads.contract import Workload
from tests.engines.jax_process import JaxProcess
from tests.engines.small_engines import BATCH, MakeEngine, kept, random_images, side_of

if TYPE_CHECKING:
    from gan_runtime.engines.tf.distribute import TfEngine


@pytest.fixture
def new_group() -> Callable[[], None]:
    """To be called before each strategy: strategies of one process otherwise share collective groups; a trainer has only one."""

    import tensorflow as tf

    def call() -> None:
        tf.distribute.MirroredStrategy._collective_key_base += 100_000

    return call


@pytest.fixture
def as_on_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulated cores exchange by collectives, and each replica updates its own copy."""
    import tensorflow as tf

    from gan_runtime.engines.tf import devices as tf_devices

    monkeypatch.setattr(tf_devices, "SharedMemoryMirroredStrategy", tf.distribute.MirroredStrategy)


@pytest.fixture(params=["in one memory", "as on GPUs"])
def exchange(request: pytest.FixtureRequest) -> None:
    """Both ways to exchange and update."""
    if request.param == "as on GPUs":
        request.getfixturevalue("as_on_gpus")


@pytest.fixture
def make(new_group: Callable[[], None]) -> MakeEngine:
    """`make(2, xla="jit")`: an engine on two replicas; 40 images, batches of 8, so 5 steps an epoch. Or on other `data`."""
    from gan_runtime.engines.tf.distribute import TfEngine
    from gan_runtime.workloads import dcgan, mlp_gan

    def call(
        replicas: int,
        workload: Workload | None = None,
        images: np.ndarray | None = None,
        data: DataSet | None = None,
        **options: Any,
    ) -> TfEngine:
        new_group()
        chosen = workload or mlp_gan.WORKLOAD
        named = {"workload": "dcgan"} if chosen is dcgan.WORKLOAD else {}
        given_options = {"replicas": replicas, "batch_size_global": BATCH, "precision": "float32"}
        spec = RunSpec.parse({**given_options, **named, **options})
        given = random_images(40, side_of(chosen)) if images is None else images
        return kept(TfEngine(spec, chosen, data or picture_set("random", given, "test"), "cpu"))

    return call


@pytest.fixture(scope="session")
def jax() -> Iterator[JaxProcess]:
    """The process with JAX, started when first asked."""
    process = JaxProcess()
    yield process
    process.close()
