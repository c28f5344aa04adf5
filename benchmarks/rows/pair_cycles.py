"""The compiler's cycles of a step of Pix2Pix at full size on a TPU v3-8: ours beside plain Keras on JAX. An estimate, like those of `cycles`."""

from __future__ import annotations

from benchmarks.cycle_answers import Answers, add_dearest, numbers
from benchmarks.effort import Effort
from benchmarks.results import Report
from benchmarks.rows.cycles import PRECISION, TOPOLOGY
from benchmarks.turns import NotMeasuredError
from gan_runtime.tpu import plan as planning
from gan_runtime.tpu import report as reports

BATCH, OF_KERAS = 64, "pair_cycles_of_keras"


def measure(report: Report, effort: Effort) -> None:
    """Both sides."""
    del effort  # what the compiler says does not vary
    report.add("facts", topology=TOPOLOGY, versions=planning.versions(), label=reports.ESTIMATE)
    pairs(report, Answers())


def pairs(report: Report, answers: Answers) -> None:
    """Both sides, and the dearest operations of both."""
    found = {}
    for side in ("ours", "keras"):
        try:
            found[side] = one = answers.of("pairs", side, TOPOLOGY, BATCH, PRECISION)
        except NotMeasuredError as error:
            report.not_measured(OF_KERAS, f"{error}.")
            continue
        report.add("pair_cycles", side=side, batch=BATCH, precision=PRECISION, **numbers(one))
        add_dearest(report, "pair_operation", side, one)
    if len(found) == 2:
        value = found["ours"].cycles / found["keras"].cycles
        report.add("figure", name=OF_KERAS, value=value, count=1)
