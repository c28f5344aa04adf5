"""The compiler's estimated cycles of a step on a TPU v3-8, ours and plain Keras on JAX.

No TPU is used and no machine is timed. To check the estimates, the row also has an epoch of CERN's
3DGAN at full size, on the machines that its authors measured.
"""

from __future__ import annotations

from benchmarks import cycles_side
from benchmarks.cycle_estimates import EstimateCache, add_most_expensive, numbers, step_estimate
from benchmarks.effort import Effort
from benchmarks.results import Report
from benchmarks.turns import NotMeasuredError
from gan_runtime.studies import references
from gan_runtime.tpu import estimates
from gan_runtime.tpu import plan as planning
from gan_runtime.tpu.plan import BATCHES

TOPOLOGY, PRECISION, BATCH = "v3:2x2", "mixed_bfloat16", BATCHES[-1]
OF_KERAS = "cycles_of_keras"
EPOCH, EPOCH_OF_KERAS = "shower_epoch_s", "shower_epoch_of_keras"


def measure(report: Report, effort: Effort) -> None:
    """Adds both sides at batch 512 with their most expensive operations, ours at the paper's other
    batches and in float32, and the epochs.
    """
    del effort  # the compiler's estimates do not vary
    programs = [
        ("keras", BATCH, PRECISION),
        *(("ours", batch, PRECISION) for batch in BATCHES),
        ("ours", BATCH, "float32"),
    ]
    cache = EstimateCache()
    by_program = {
        (side, batch, precision): cache.estimate("pictures", side, TOPOLOGY, batch, precision)
        for side, batch, precision in programs
    }
    report.add("facts", topology=TOPOLOGY, versions=planning.versions(), label=estimates.ESTIMATE)
    for (side, batch, precision), estimate in by_program.items():
        report.add("cycles", side=side, batch=batch, precision=precision, **numbers(estimate))
    keras, ours = by_program["keras", BATCH, PRECISION], by_program["ours", BATCH, PRECISION]
    for side, estimate in (("keras", keras), ("ours", ours)):
        add_most_expensive(report, "operation", side, estimate)
    report.add("figure", name=OF_KERAS, value=ours.cycles / keras.cycles, count=1)
    epochs(report, cache)


def epochs(report: Report, cache: EstimateCache) -> None:
    """Adds the epoch of both sides on each machine once compiled."""
    estimates = {}
    for topology in references.MACHINES:
        for side in references.PROGRAMS:
            try:
                estimates[side, topology] = _epoch(report, cache, side, topology)
            except NotMeasuredError as error:
                report.not_measured(f"{references.KIND}_{side}_{topology}", f"{error}.")
    ours, keras = (
        estimates.get((references.PROJECT, TOPOLOGY)),
        estimates.get((references.PLAIN, TOPOLOGY)),
    )
    if ours is not None:
        report.add("figure", name=EPOCH, value=ours, count=1)
    if ours is not None and keras is not None:
        report.add("figure", name=EPOCH_OF_KERAS, value=ours / keras, count=1)


def _epoch(report: Report, cache: EstimateCache, side: str, topology: str) -> float:
    """Seconds of an epoch. Raises NotMeasuredError."""
    batch = references.EPOCH.batch_per_core * references.EPOCH.cores
    plan = cycles_side.plan_of("showers", topology, batch, PRECISION)
    estimate = step_estimate(
        [
            (cache.estimate("showers", part, topology, batch, PRECISION), times)
            for part, times in cycles_side.PARTS[side].items()
        ]
    )
    epoch_s = estimate.epoch_s(plan.steps_per_epoch(plan.point), plan.spec.steps_per_loop)
    facts = {
        "epoch_s": epoch_s,
        "share_of_memory": estimate.share_of_memory,
        "compile_s": estimate.compile_seconds,
    }
    report.add(references.KIND, side=side, topology=topology, **facts, **numbers(estimate))
    if topology == TOPOLOGY:
        add_most_expensive(report, "epoch_operation", side, estimate)
    return epoch_s
