"""The compiler's cycles of a step on a TPU v3-8: ours beside plain Keras on JAX. An estimate: no TPU is used, so no machine is timed.

Then an epoch of CERN's 3DGAN at full size on the machines on which its authors measured it: how good such estimates are.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from benchmarks.effort import Effort, answer_of
from benchmarks.results import Report
from gan_runtime.studies import estimates
from gan_runtime.tpu import plan as planning
from gan_runtime.tpu import report as reports
from gan_runtime.tpu.plan import BATCHES
from gan_runtime.tpu.report import StepEstimate

TOPOLOGY, PRECISION, BATCH = "v3:2x2", "mixed_bfloat16", BATCHES[-1]
OF_KERAS = "cycles_of_keras"
AT_A_TIME = 2
EPOCH, EPOCH_OF_KERAS = "shower_epoch_s", "shower_epoch_of_keras"


def measure(report: Report, effort: Effort) -> None:
    """Both sides at batch 512, ours at the paper's other batches and in float32, and the dearest operations of both."""
    del effort  # what the compiler says does not vary
    programs = [
        ("keras", BATCH, PRECISION),
        *(("ours", batch, PRECISION) for batch in BATCHES),
        ("ours", BATCH, "float32"),
    ]
    found = {program: _answer(*program) for program in programs}
    report.add("facts", topology=TOPOLOGY, versions=planning.versions(), label=reports.ESTIMATE)
    for (side, batch, precision), one in found.items():
        report.add("cycles", side=side, batch=batch, precision=precision, **_numbers(one))
    keras, ours = found["keras", BATCH, PRECISION], found["ours", BATCH, PRECISION]
    for side, one in (("keras", keras), ("ours", ours)):
        for operation in one.dearest:
            report.add(
                "operation", side=side, layer=operation.layer, name=operation.name, cycles=operation.cycles
            )
    report.add("figure", name=OF_KERAS, value=ours.cycles / keras.cycles, count=1)
    _epochs(report)


def _epochs(report: Report) -> None:
    """Both sides on each machine, and the dearest operations of ours. Compiling takes one core: two programs at a time."""
    programs = [(side, topology) for side in estimates.PROGRAMS for topology in estimates.MACHINES]
    batch = estimates.BATCH_PER_CORE * estimates.CORES
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        answers = list(
            pool.map(lambda program: _asked("showers", program[0], program[1], batch, PRECISION), programs)
        )
    found = {
        program: reports.from_json(answer["estimate"])
        for program, answer in zip(programs, answers, strict=True)
    }
    seconds = {program: answer["epoch_s"] for program, answer in zip(programs, answers, strict=True)}
    for (side, topology), one in found.items():
        facts = {"epoch_s": seconds[side, topology], "share_of_memory": one.share_of_memory}
        report.add(estimates.KIND, side=side, topology=topology, **facts, **_numbers(one))
    for operation in found[estimates.OWN, TOPOLOGY].dearest:
        report.add("epoch_operation", layer=operation.layer, name=operation.name, cycles=operation.cycles)
    ours, keras = seconds[estimates.OWN, TOPOLOGY], seconds[estimates.PLAIN, TOPOLOGY]
    report.add("figure", name=EPOCH, value=ours, count=1)
    report.add("figure", name=EPOCH_OF_KERAS, value=ours / keras, count=1)


def _answer(side: str, batch: int, precision: str) -> StepEstimate:
    return reports.from_json(_asked("pictures", side, TOPOLOGY, batch, precision)["estimate"])


def _asked(program: str, side: str, topology: str, batch: int, precision: str) -> dict[str, Any]:
    return answer_of(["-m", "benchmarks.cycles_side", program, side, topology, str(batch), precision])


def _numbers(one: StepEstimate) -> dict[str, float | None]:
    return {
        "cycles": one.cycles,
        "step_ms": one.step_s * 1e3,
        "floor_ms": None if one.floor_s is None else one.floor_s * 1e3,
        "share_of_peak": one.share_of_peak,
        "exchanges": one.exchanges,
        "exchange_mb": one.exchange_bytes / 1e6,
        "operations": one.operations,
    }
