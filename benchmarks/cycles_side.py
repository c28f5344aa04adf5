"""One program of the cycle table, compiled for a TPU that is not there; prints its estimate as JSON.

python -m benchmarks.cycles_side ours|keras TOPOLOGY BATCH PRECISION
"""

from __future__ import annotations

import json
import os
import sys
import time

from gan_runtime.jobs.kinds import COMPILE_ONLY
from gan_runtime.spec.presets import preset
from gan_runtime.tpu import plan as planning
from gan_runtime.tpu import report
from gan_runtime.tpu.report import StepEstimate


def estimate(side: str, topology: str, batch_size_global: int, precision: str) -> StepEstimate:
    """The step of preset `paper` with this batch, by our engine or by the plain Keras peer."""
    from gan_runtime.tpu import compiling

    begin = time.monotonic()
    values = {**preset("paper").values, "batch_size_global": batch_size_global, "precision": precision}
    plan = planning.make(values, topology, sweep=False)
    if side == "ours":
        compiled = compiling.compile_call(plan.spec, plan.reading, plan.point)
    else:
        from benchmarks import keras_on_jax

        assert plan.spec.steps_per_loop == keras_on_jax.STEPS
        compiled = keras_on_jax.Peer(precision).compiled(topology, batch_size_global)
    return compiling.read(compiled, plan.spec, plan.point, time.monotonic() - begin)


if __name__ == "__main__":
    os.environ.update(COMPILE_ONLY)
    found = estimate(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
    print(json.dumps(report.to_json(found)))
