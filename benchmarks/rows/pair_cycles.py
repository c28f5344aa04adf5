"""The compiler's estimated cycles of a step of Pix2Pix at full size on a TPU v3-8, ours and plain
Keras on JAX.
"""

from __future__ import annotations

from benchmarks.cycle_estimates import EstimateCache, add_most_expensive, numbers
from benchmarks.effort import Effort
from benchmarks.results import Report
from benchmarks.rows.cycles import PRECISION, TOPOLOGY
from benchmarks.turns import NotMeasuredError
from gan_runtime.tpu import estimates
from gan_runtime.tpu import plan as planning

BATCH, OF_KERAS, PER_REPLICA = 64, "pair_cycles_of_keras", "ours_per_replica"
# Program and side of cycles_side.py. The first two normalize over all cores; in the last, each core
# normalizes its share of the batch.
SIDES = {
    "ours": ("pairs", "ours"),
    "keras": ("pairs", "keras"),
    PER_REPLICA: ("pairs_per_replica", "ours"),
}


def measure(report: Report, effort: Effort) -> None:
    """Adds both sides, and ours with the default batch norm."""
    del effort  # the compiler's estimates do not vary
    report.add("facts", topology=TOPOLOGY, versions=planning.versions(), label=estimates.ESTIMATE)
    pairs(report, EstimateCache())


def pairs(report: Report, cache: EstimateCache) -> None:
    """Adds the programs of SIDES. The two with the same mathematics have a figure and their most
    expensive operations.
    """
    estimates = {}
    for name, (program, side) in SIDES.items():
        try:
            estimates[name] = estimate = cache.estimate(program, side, TOPOLOGY, BATCH, PRECISION)
        except NotMeasuredError as error:
            report.not_measured(
                f"pair_cycles_{name}" if name == PER_REPLICA else OF_KERAS, f"{error}."
            )
            continue
        report.add("pair_cycles", side=name, batch=BATCH, precision=PRECISION, **numbers(estimate))
        if name != PER_REPLICA:
            add_most_expensive(report, "pair_operation", name, estimate)
    if {"ours", "keras"} <= estimates.keys():
        value = estimates["ours"].cycles / estimates["keras"].cycles
        report.add("figure", name=OF_KERAS, value=value, count=1)
