"""Trains the small cases of `parity` on the TensorFlow engine and stores the results."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests.support.engines import golden, tf_same_noise
from tests.support.engines.golden import Stored
from tests.support.engines.parity import SMALL, Case, rows_of, workload_of
from tests.support.engines.small_engines import tf_engine

CORES = 2


def trained(case: Case) -> Stored:
    """Trains a case with the noise of `same_noise`."""
    with pytest.MonkeyPatch.context() as patch:
        tf_same_noise.hand_to_engines(patch)
        engine = tf_engine(workload=workload_of(case), data=rows_of(case), **case.spec_options)
        weights = golden.weights_of(engine.state())
        begin = {
            name: array for name, array in weights.items() if not name.startswith(golden.AVERAGE)
        }
        numbers = engine.run(case.steps).values
        weights = golden.weights_of(engine.state())
        scores = {name: np.float32(score) for name, score in engine.probe().scores.items()}
    return Stored(begin, numbers, weights, scores)


def main() -> None:
    """Trains all cases on simulated cores and stores the results."""
    processor = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(
        processor, [tf.config.LogicalDeviceConfiguration()] * CORES
    )
    golden.write({name: trained(case) for name, case in SMALL.items()})
    print(f"{golden.FILE}: {golden.FILE.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
