"""Compiles one program of the cycle tables for a TPU, without having one; prints its estimate as
JSON.

python -m benchmarks.cycles_side pictures ours|keras TOPOLOGY BATCH PRECISION
python -m benchmarks.cycles_side showers PART TOPOLOGY BATCH PRECISION
python -m benchmarks.cycles_side pairs ours|keras TOPOLOGY BATCH PRECISION
python -m benchmarks.cycles_side pairs_per_replica ours TOPOLOGY BATCH PRECISION

PART is a program in PARTS.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from gan_runtime.base.fields import Fields, pair_fields
from gan_runtime.domains.showers.entry import shower_fields
from gan_runtime.spec import RunSpec
from gan_runtime.spec.presets import preset
from gan_runtime.studies.references import EPOCH
from gan_runtime.tpu import estimates
from gan_runtime.tpu import plan as planning
from gan_runtime.tpu.check import COMPILE_ONLY
from gan_runtime.tpu.estimates import TOPOLOGIES, Point, StepEstimate
from gan_runtime.tpu.plan import CheckPlan, Reading

SHOWERS = {"workload": "shower_3dgan", "dataset": "showers", "size": "full", "steps_per_loop": 2}
GRID = (51, 51, 25, 1)
# The peer normalizes over the whole batch: jit over a sharded batch computes what one device would.
PAIRS = {
    "batch_norm": "synchronised",
    "workload": "pix2pix",
    "size": "full",
    "tile": 256,
    "steps_per_loop": 2,
}
PIXELS, PAIRS_IN_A_SET = 256, 12_800


def pictures(topology: str, batch: dict[str, Any]) -> CheckPlan:
    """The step of preset `paper`."""
    return planning.make({**preset("paper").values, **batch}, topology, sweep=False)


def showers(topology: str, batch: dict[str, Any]) -> CheckPlan:
    """The step of CERN's 3DGAN at full size, on streamed rows: they do not fit into a core."""
    return _streamed({**SHOWERS, **batch}, topology, shower_fields(GRID), EPOCH.published.images)


def pairs(topology: str, batch: dict[str, Any]) -> CheckPlan:
    """The step of Pix2Pix at full size, on streamed pairs of RGB images of 256 pixels."""
    return _streamed({**PAIRS, **batch}, topology, pair_fields(PIXELS, PIXELS), PAIRS_IN_A_SET)


def pairs_per_replica(topology: str, batch: dict[str, Any]) -> CheckPlan:
    """The same with the default batch norm: a core normalizes its share, unlike the peer."""
    return pairs(topology, {**batch, "batch_norm": "per_replica"})


def _streamed(options: dict[str, Any], topology: str, fields: Fields, rows: int) -> CheckPlan:
    devices = TOPOLOGIES[topology].devices
    spec = RunSpec.parse({**options, "replicas": devices, **planning.ON_A_TPU})
    point = Point(topology, devices, spec.batch_size_global, spec.precision)
    return CheckPlan(spec, Reading(fields, rows, streamed=True), (point,))


PLANS = {
    "pictures": pictures,
    "showers": showers,
    "pairs": pairs,
    "pairs_per_replica": pairs_per_replica,
}
# The programs of a step of `showers` by side, and how often each runs.
PARTS = {
    "ours": {"ours": 1},
    "keras": {"update_discriminator": 2, "generate": 1, "update_generator": 2},
}


def estimate(
    program: str, side: str, topology: str, batch_size_global: int, precision: str
) -> dict[str, Any]:
    """The estimate of a program (a key of PLANS), for our engine or for a peer in plain Keras."""
    begin = time.monotonic()
    plan = plan_of(program, topology, batch_size_global, precision)
    compiled, spec = _compiled(program, side, plan)
    return estimates.to_json(_read(compiled, spec, plan, time.monotonic() - begin))


def plan_of(program: str, topology: str, batch_size_global: int, precision: str) -> CheckPlan:
    """The plan that both sides train."""
    return PLANS[program](
        topology, {"batch_size_global": batch_size_global, "precision": precision}
    )


def _compiled(program: str, side: str, plan: CheckPlan) -> tuple[Any, RunSpec]:
    """The compiled program, and its options with the number of steps per call."""
    point, spec = plan.point, plan.spec
    if side == "ours":
        from gan_runtime.tpu import compiling

        return compiling.lowered_call(spec, plan.reading, point).compile(), spec
    if program == "showers":
        from benchmarks.keras_showers_on_jax import ShowerPeer

        compiled = ShowerPeer(point.precision).compiled(
            side, point.topology, point.batch_size_global
        )
        return compiled, spec.model_copy(update={"steps_per_loop": 1})
    if program == "pairs":
        from benchmarks.keras_pix2pix_on_jax import PairPeer

        compiled = PairPeer(point.precision, spec.of_workload).compiled(
            point.topology, point.batch_size_global
        )
        return compiled, spec.model_copy(update={"steps_per_loop": 1})
    from benchmarks import keras_on_jax

    assert spec.steps_per_loop == keras_on_jax.STEPS_PER_CALL
    return (
        keras_on_jax.Peer(point.precision).compiled(point.topology, point.batch_size_global),
        spec,
    )


def _read(compiled: Any, spec: RunSpec, plan: CheckPlan, seconds: float) -> StepEstimate:
    from gan_runtime.tpu import compiling

    return compiling.read(compiled, spec, plan.point, seconds)


if __name__ == "__main__":
    os.environ.update(COMPILE_ONLY)
    program, side, topology, batch, precision = sys.argv[1:]
    print(json.dumps(estimate(program, side, topology, int(batch), precision)))
