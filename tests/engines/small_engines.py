"""What the tests of the TensorFlow engine share: small images, engines kept alive, comparisons."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from gan_runtime.engines.contract import Arrays
from gan_runtime.engines.tf_devices import SharedMemoryMirroredStrategy
from gan_runtime.engines.tf_distribute import TfEngine

BATCH = 8
MakeEngine = Callable[..., TfEngine]
Numbers = dict[str, np.ndarray]


def random_images(count: int) -> np.ndarray:
    """uint8 (count, 28, 28, 1), 0 to 254, every image another."""
    return np.random.default_rng(1).integers(0, 255, (count, 28, 28, 1), dtype=np.uint8)


def kept(thing: Any) -> Any:
    """Never freed: TensorFlow waits seconds to minutes for the autotune threads of a tf.data iterator that is let go."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
    return thing


def trained(engine: TfEngine, *calls: int) -> Numbers:
    """Traces and runs calls of so many steps; metric → float32 (steps,)."""
    engine.trace()
    numbers = [engine.run(steps).values for steps in calls]
    return {metric: np.concatenate([call[metric] for call in numbers]) for metric in numbers[0]}


def copies(engine: TfEngine, variable: Any) -> list[np.ndarray]:
    """A variable's value on each replica."""
    return [value.numpy() for value in engine._strategy.experimental_local_results(variable.value)]


def copies_in_use(engine: TfEngine) -> dict[str, list[np.ndarray]]:
    """Every variable's value on each replica that reads it: replicas in one memory are updated by the slots of the first."""
    shared = isinstance(engine._strategy, SharedMemoryMirroredStrategy)
    return {
        name: values[:1] if shared and name.endswith(("_momentum", "_velocity")) else values
        for name, values in copies_by_name(engine).items()
    }


def copies_by_name(engine: TfEngine) -> dict[str, list[np.ndarray]]:
    """Every variable's value on each replica."""
    return {name: copies(engine, variable) for name, variable in engine._state._variables().items()}


def assert_close(found: dict[str, Any], expected: dict[str, Any], tolerance: float) -> None:
    """The same names, and no number further apart than `tolerance`."""
    assert set(found) == set(expected)
    apart = {name: float(np.abs(found[name].astype(np.float64) - expected[name]).max()) for name in expected}
    assert max(apart.values()) <= tolerance, sorted(apart.items(), key=lambda item: -item[1])[:3]


def assert_equal(found: Arrays, expected: Arrays) -> None:
    """The same names, and the same numbers to the last bit."""
    assert set(found) == set(expected)
    assert [name for name in expected if not np.array_equal(found[name], expected[name])] == []
