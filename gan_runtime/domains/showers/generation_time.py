"""How long the networks of a run take to make rows, on this machine's processor: Keras' own prediction, of any engine."""

from __future__ import annotations

import statistics
import time
from typing import Any

from gan_runtime.engines.inputs import HostNoise, drawn_inputs
from gan_runtime.training.trained import Trained

BATCHES = (1, 100)
REPEATS = 5


def milliseconds_each(networks: Trained, rows: int) -> float:
    """Median over REPEATS calls, compiled before, of so many rows at a time; for one row. Loads Keras."""
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
