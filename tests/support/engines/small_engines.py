"""Shared by the engine tests: small images, engines that stay alive, comparisons."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gan_runtime import catalog
from gan_runtime.data.contract import DataSet, picture_set
from gan_runtime.engines.contract import Arrays, BinCounts
from gan_runtime.engines.inputs import RowOrder
from gan_runtime.engines.task import StepPlan
from gan_runtime.spec import RunSpec
from gan_runtime.workloads.contract import Workload

if TYPE_CHECKING:
    from gan_runtime.engines.tf.engine import TfEngine

BATCH = 8
MakeEngine = Callable[..., "TfEngine"]
Numbers = dict[str, np.ndarray]


class Streamed:
    """A data set that returns rows only by number, and records the numbers that were read."""

    def __init__(self, whole: DataSet) -> None:
        self._whole, self.reads, self.resident = whole, list[np.ndarray](), None
        self.name, self.origin, self.note = whole.name, whole.origin, whole.note
        self.fields, self.rows, self.held_out = whole.fields, whole.rows, whole.held_out

    def read(self, indices: np.ndarray) -> dict[str, np.ndarray]:
        self.reads.append(indices)
        return self._whole.read(indices)

    def read_held_out(self, count: int, first: int = 0) -> dict[str, np.ndarray]:
        return self._whole.read_held_out(count, first)


def random_images(count: int, size: int = 28) -> np.ndarray:
    """uint8 (count, size, size, 1), 0 to 254; all images differ."""
    return np.random.default_rng(1).integers(0, 255, (count, size, size, 1), dtype=np.uint8)


def side_of(workload: Workload) -> int:
    """The side in pixels of the square images that a test workload reads."""
    from tests.support.engines import tiny_gan

    make = getattr(workload, "make_networks", None)
    is_tiny = getattr(make, "__module__", "") == tiny_gan.__name__
    return tiny_gan.IMAGE_SHAPE[0] if is_tiny else 28


def new_group() -> None:
    """Call this before creating a strategy: strategies of one process otherwise share collective
    groups. A trainer has only one.
    """
    import tensorflow as tf

    tf.distribute.MirroredStrategy._collective_key_base += 100_000


def tf_engine(
    replicas: int,
    workload: Workload | None = None,
    images: np.ndarray | None = None,
    data: DataSet | None = None,
    **options: Any,
) -> TfEngine:
    """`tf_engine(2, xla="jit")`: an engine on two replicas with 40 images and batches of 8, so 5
    steps per epoch; or on other `data`.
    """
    from gan_runtime.engines.tf.engine import TfEngine
    from gan_runtime.workloads import mlp_gan

    new_group()
    of_engine = workload or mlp_gan.WORKLOAD
    given_options = {"replicas": replicas, "batch_size_global": BATCH, "precision": "float32"}
    spec = RunSpec.parse({**given_options, **named(of_engine), **options})
    rows = random_images(40, side_of(of_engine)) if images is None else images
    return keep_alive(TfEngine(spec, of_engine, data or picture_set("random", rows, "test"), "cpu"))


def named(workload: Workload) -> dict[str, str]:
    """The option that names a workload of the catalog. Workloads of the tests train under the
    default entry.
    """
    for name, entry in catalog.WORKLOADS.items():
        if importlib.import_module(entry.module).WORKLOAD is workload:
            return {"workload": name}
    return {}


def seed_of(replica: int, step: int, batch: int, images: int) -> int:
    """A seed with which this replica of two sees image 0 in this step of epoch 1; steps from 0."""
    plan = StepPlan(batches=1, batch_size_global=batch, rows=images, updates={})
    return next(
        seed
        for seed in range(1, 200)
        if 0 in np.split(RowOrder(seed, plan).rows(step, 1)[0, 0], 2)[replica]
    )


def keep_alive(thing: Any) -> Any:
    """Never frees the object: TensorFlow waits seconds to minutes for the autotune threads of a
    released tf.data iterator.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
    return thing


def trained(engine: TfEngine, *calls: int) -> Numbers:
    """Runs calls of these numbers of steps; metric → float32 (steps,).

    The first call traces the step; after `engine.trace()` the second would build the probe, too.
    """
    numbers = [engine.run(steps).values for steps in calls]
    return {metric: np.concatenate([call[metric] for call in numbers]) for metric in numbers[0]}


def copies(engine: TfEngine, variable: Any) -> list[np.ndarray]:
    """A variable's value on each replica."""
    return [value.numpy() for value in engine.strategy.experimental_local_results(variable.value)]


def copies_in_use(engine: TfEngine) -> dict[str, list[np.ndarray]]:
    """Every variable's value on each replica that reads it. Replicas that share memory are updated
    by the slots of the first.
    """
    from gan_runtime.engines.tf.strategy import SharedMemoryMirroredStrategy

    shared = isinstance(engine.strategy, SharedMemoryMirroredStrategy)
    return {
        name: values[:1] if shared and name.endswith(("_momentum", "_velocity")) else values
        for name, values in copies_by_name(engine).items()
    }


def copies_by_name(engine: TfEngine) -> dict[str, list[np.ndarray]]:
    """Every variable's value on each replica."""
    return {name: copies(engine, variable) for name, variable in engine.variables().items()}


def assert_close(actual: dict[str, Any], expected: dict[str, Any], tolerance: float) -> None:
    """Asserts that names are equal and numbers differ by at most `tolerance`."""
    assert set(actual) == set(expected)
    apart = {
        name: float(np.abs(actual[name].astype(np.float64) - expected[name]).max())
        for name in expected
    }
    assert max(apart.values()) <= tolerance, sorted(apart.items(), key=lambda pair: -pair[1])[:3]


def assert_close_in_share(actual: Numbers, expected: Numbers, share: float) -> None:
    """Asserts that names are equal and numbers differ by at most this share of the expected ones,
    none of which is 0.
    """
    ones = {name: np.ones_like(values) for name, values in expected.items()}
    assert_close({name: values / expected[name] for name, values in actual.items()}, ones, share)


def assert_equal(actual: Arrays, expected: Arrays) -> None:
    """Asserts that names are equal, and numbers to the last bit."""
    assert set(actual) == set(expected)
    assert [name for name in expected if not np.array_equal(actual[name], expected[name])] == []


def assert_moves_alike(
    before: Arrays, after: Arrays, expected: Arrays, share: float, unmoved: tuple[str, ...] = ()
) -> None:
    """Asserts that every weight has moved from `before` as expected, up to this share of the length
    of its own move. All weights but `unmoved` have moved.

    A tolerance for the weights themselves misses errors of steps that move them by less.
    """
    weights = [name for name in before if "/" in name and not name.startswith("optimizer_")]
    moves = {name: _length(expected[name], before[name]) for name in weights}
    assert tuple(name for name, length in moves.items() if length == 0.0) == unmoved
    off = {
        name: _length(after[name], expected[name]) / moves[name] for name in weights if moves[name]
    }
    assert max(off.values()) <= share, sorted(off.items(), key=lambda pair: -pair[1])[:3]


def moved(before: Arrays, after: Arrays, network: str) -> np.ndarray:
    """The moves of all weights of a network, as one float64 vector."""
    names = sorted(
        name for name in before if name.startswith(f"{network}/") and "moving_" not in name
    )
    return np.concatenate(
        [(after[name].astype(np.float64) - before[name]).ravel() for name in names]
    )


def cosine(first: np.ndarray, second: np.ndarray) -> float:
    """The cosine of the angle between two vectors: 1 for the same direction."""
    return float(first @ second / (np.linalg.norm(first) * np.linalg.norm(second)))


def assert_counts_alike(actual: BinCounts, expected: BinCounts, share: float) -> None:
    """Asserts that two histograms of nearly equal values match bin by bin, except for the `share`
    of values that rounding moves across an edge.
    """
    span = expected.edges[-1] - expected.edges[0]
    assert actual.name == expected.name
    assert np.abs(actual.edges - expected.edges).max() <= 0.01 * span, actual.name
    assert actual.counts.sum() == expected.counts.sum(), actual.name
    moved = np.abs(actual.counts - expected.counts).sum() / 2
    assert moved <= max(1, share * expected.counts.sum()), (
        actual.name,
        moved,
        actual.counts,
        expected.counts,
    )


def _length(first: np.ndarray, second: np.ndarray) -> float:
    return float(np.linalg.norm(first.astype(np.float64) - second))
