"""The JAX engine as a side: `engine.run` without the rest of a run.

`epoch` trains one epoch of CERN's 3DGAN on streamed rows, for at most the given seconds.

python -m benchmarks.gpu.jax_side dcgan_mnist 256 mixed_bfloat16        serves (side.py)
python -m benchmarks.gpu.jax_side epoch 120                             prints one JSON line
python -m benchmarks.gpu.jax_side rate                                  prints one JSON line
python -m benchmarks.gpu.jax_side operations pix2pix                    prints one JSON line
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any
from unittest import mock

from benchmarks.gpu.cases import PRECISIONS, Case, EpochOfShowers, random_rows
from benchmarks.gpu.side import Facts, serve
from gan_runtime.data.contract import DataSet
from gan_runtime.engines.jax import devices as jax_devices
from gan_runtime.engines.task import data_for_workload, workload_of

ACCELERATOR = os.environ.get("GPU_BENCH_ACCELERATOR", "gpu")  # cpu: only to test the script
EPOCH_CASE = Case("shower_3dgan", 64, "mixed_bfloat16")
OPERATIONS_BATCH = 64
MATRIX, MATRIX_REPEATS = (8_192 if ACCELERATOR == "gpu" else 512), 20


class EngineStep:
    """The JAX engine as a `side.CompiledStep`."""

    def __init__(self, case: Case, data: DataSet) -> None:
        self._engine, self._steps = engine(case, data), case.steps_per_call

    def call(self) -> int:
        """Trains the steps of one host call."""
        self._engine.run(self._steps)
        return self._steps

    def wait(self) -> None:
        """Does nothing, since `run` waits."""

    def facts(self) -> Facts:
        """Peak bytes on the device."""
        memory = self._engine.device_memory()
        return {"peak_bytes": memory and memory.peak_bytes}


def build(case: Case) -> EngineStep:
    """The engine with random rows."""
    return EngineStep(case, random_rows(case.workload, case.batch))


def engine(case: Case, data: DataSet) -> Any:
    """The engine, built and traced as in a trainer."""
    from gan_runtime.engines.jax.engine import JaxEngine

    spec = case.spec
    jax_engine = JaxEngine(spec, workload_of(spec), data_for_workload(spec, data), ACCELERATOR)
    jax_engine.trace()
    return jax_engine


def epoch(max_seconds: float) -> Facts:
    """Seconds of one epoch, or of the showers trained within `max_seconds`."""
    data = EpochOfShowers()
    jax_engine = engine(EPOCH_CASE, data)
    jax_engine.run(1)  # compiles
    steps, begin, done = data.rows // EPOCH_CASE.batch, time.perf_counter(), 0
    while done < steps and time.perf_counter() - begin < max_seconds:
        steps_of_call = min(EPOCH_CASE.steps_per_call, steps - done)
        jax_engine.run(steps_of_call)
        done += steps_of_call
    return {
        "batch": EPOCH_CASE.batch,
        "precision": EPOCH_CASE.precision,
        "showers": done * EPOCH_CASE.batch,
        "of_showers": data.rows,
        "seconds": time.perf_counter() - begin,
    }


def operations(workload: str) -> Facts:
    """Floating-point operations of a step per image, as XLA counts them for the GPU's kernels.

    Traced on the CPU. Kernel positions outside the image do not count.
    """
    from gan_runtime.engines.jax import kernels, step

    with mock.patch.object(step, "JaxCpuKernels", kernels.JaxKernels):
        case = Case(workload, OPERATIONS_BATCH, PRECISIONS[0])
        cost = engine(case, random_rows(workload, case.batch)).lowered.cost_analysis()
    return {"workload": workload, "flop_per_image": cost["flops"] / case.batch}


def rate() -> Facts:
    """FLOP/s of a square matrix product by precision, and the device's name and versions."""
    import jax
    import jax.numpy as jnp
    import keras

    def flop_per_s(dtype: str) -> float:
        left, right = jax.random.normal(jax.random.key(1), (2, MATRIX, MATRIX), dtype)
        product = jax.jit(jnp.matmul)
        product(left, right).block_until_ready()
        begin = time.perf_counter()
        for _ in range(MATRIX_REPEATS):
            last = product(left, right)
        last.block_until_ready()
        return 2.0 * MATRIX**3 * MATRIX_REPEATS / (time.perf_counter() - begin)

    device = jax.devices()[0]
    return {
        "device": device.device_kind,
        "jax": jax.__version__,
        "keras": keras.__version__,
        "side": MATRIX,
        "flop_per_s": dict(zip(PRECISIONS, map(flop_per_s, ("float32", "bfloat16")), strict=True)),
    }


def main() -> None:
    """Runs the command of the first argument; otherwise serves a case."""
    jax_devices.set_flags(Case("dcgan_mnist", 64, PRECISIONS[0]).spec, ACCELERATOR)
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    if sys.argv[1] == "epoch":
        print(json.dumps(epoch(float(sys.argv[2]))))
    elif sys.argv[1] == "operations":
        print(json.dumps(operations(sys.argv[2])))
    elif sys.argv[1] == "rate":
        print(json.dumps(rate()))
    else:
        serve(build)


if __name__ == "__main__":
    main()
