"""What the networks of a run read from rows that they are given: Keras' own prediction, of
any engine.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.fields import Fields
from gan_runtime.engines.contract import Arrays
from gan_runtime.engines.inputs import HostNoise, drawn_inputs
from gan_runtime.training.trained import Trained
from gan_runtime.workloads.contract import Options, Reads

ROWS = 64  # at a time
Reading = Callable[[Arrays, Mapping[str, NDArray[Any]]], dict[str, NDArray[Any]]]


def reading(workload: object, options: Options, fields: Fields) -> Reading | None:
    """A function that is given the arrays of a checkpoint and values (rows, …) by field, and tells
    what the workload's networks read from them: named arrays (rows,). None where the workload reads
    nothing. Loads Keras, and compiles once for all checkpoints.
    """
    if not isinstance(workload, Reads):
        return None
    import keras

    asked: Reads = workload
    networks = asked.networks(options, fields)

    class Read(keras.Model):  # type: ignore[misc]
        def call(self, values: Any) -> Any:
            return dict(asked.read(options, networks, values))

    model = Read()

    def read(arrays: Arrays, values: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        for name, network in networks.items():
            for variable in network.weights:
                variable.assign(arrays[f"{name}/{variable.path}"])
        count = len(next(iter(values.values())))
        places = (
            np.arange(count + -count % ROWS) % count
        )  # every batch is whole, so one program serves all
        parts = [
            model.predict_on_batch({name: array[rows] for name, array in values.items()})
            for rows in places.reshape(-1, ROWS)
        ]
        return {name: np.concatenate([part[name] for part in parts])[:count] for name in parts[0]}

    return read


# ---- generation time -----------------------------------------------------------------------------
# How long the networks of a run take to make rows, on this machine's processor: Keras' own
# prediction, of any engine.

BATCHES = (1, 100)
REPEATS = 5


def milliseconds_each(networks: Trained, rows: int) -> float:
    """Median over REPEATS calls, compiled before, of so many rows at a time; for one row.

    Loads Keras.
    """
    import keras

    workload, options, data = networks.workload, networks.spec.of_workload, networks.data
    new = workload.networks(options, data.fields)  # other weights take as long

    class Shown(keras.Model):  # type: ignore[misc]
        def call(self, inputs: Any) -> Any:
            return dict(workload.show(options, new, inputs, HostNoise(0)))

    asked, model = drawn_inputs(workload, options, data, rows, seed=0), Shown()
    model.predict_on_batch(asked)
    seconds = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        model.predict_on_batch(asked)
        seconds.append(time.perf_counter() - begin)
    return 1e3 * statistics.median(seconds) / rows
