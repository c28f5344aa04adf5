"""The compiler's cycles of a step of Pix2Pix at full size on a TPU v3-8: ours next to plain Keras
on JAX. An estimate, like those of `cycles`.
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
# Program and side of cycles_side.py. Batch norm goes over all cores in the first two; in the last
# each core normalizes its own share.
SIDES = {
    "ours": ("pairs", "ours"),
    "keras": ("pairs", "keras"),
    PER_REPLICA: ("pairs_per_replica", "ours"),
}


def measure(report: Report, effort: Effort) -> None:
    """Both sides, and ours with the default batch norm."""
    del effort  # what the compiler says does not vary
    report.add("facts", topology=TOPOLOGY, versions=planning.versions(), label=estimates.ESTIMATE)
    pairs(report, EstimateCache())


def pairs(report: Report, cache: EstimateCache) -> None:
    """The programs of SIDES; of the two that do the same mathematics the figure, and their
    most expensive operations.
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
