"""The TPU compiler's answers about single programs, and their sums for a whole step.

An answer can take the compiler minutes, so each is stored at once in `benchmarks/kept/`, which git
ignores. Its name holds a digest of everything that the program depends on: its arguments, the
versions of the compiler and of what feeds it, and the code behind it. An interrupted row continues
where it stopped. Cycles do not depend on the machine, so a stored answer is as good as a new one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.effort import answer_of
from benchmarks.results import Report
from gan_runtime.records.home import REPOSITORY
from gan_runtime.records.run_folder import write_json
from gan_runtime.tpu import estimates
from gan_runtime.tpu import plan as planning
from gan_runtime.tpu.estimates import ExpensiveOperation, StepEstimate

FOLDER = REPOSITORY / "benchmarks" / "kept"
LONGEST_S = 3_600.0  # per program; the longest takes a few minutes on an idle core
MOST_EXPENSIVE = 10
# The files that the programs of plain Keras depend on; `planning.code_version` covers ours.
PEERS = (
    "benchmarks/cycles_side.py",
    "benchmarks/keras_networks.py",
    "benchmarks/keras_on_jax.py",
    "benchmarks/keras_pix2pix_networks.py",
    "benchmarks/keras_pix2pix_on_jax.py",
    "benchmarks/keras_showers_on_jax.py",
    "gan_runtime/tpu/compiling.py",
    "gan_runtime/tpu/hlo_cost.py",
    "gan_runtime/workloads/losses.py",
    "gan_runtime/domains/showers/networks.py",
)


def from_child(arguments: list[str]) -> dict[str, Any]:
    """The answer of cycles_side.py. Raises NotMeasuredError, also after LONGEST_S."""
    return answer_of(["-m", "benchmarks.cycles_side", *arguments], LONGEST_S)


@dataclass(frozen=True)
class Answers:
    """Stored in `folder`. `compile` computes each missing answer, which is stored at once."""

    folder: Path = FOLDER
    compile: Callable[[list[str]], dict[str, Any]] = from_child

    def of(
        self, program: str, side: str, topology: str, batch: int, precision: str
    ) -> StepEstimate:
        """cycles_side.py lists the values of these arguments. Raises NotMeasuredError."""
        arguments = [program, side, topology, str(batch), precision]
        path = self.folder / f"{'-'.join(arguments).replace(':', '.')}-{_made_of(side)}.json"
        if not path.exists():
            answer = self.compile(arguments)
            self.folder.mkdir(exist_ok=True)
            write_json(path, answer)
        return estimates.from_json(json.loads(path.read_text(encoding="utf-8")))


def _made_of(side: str) -> str:
    """A digest of the code behind the programs of a side."""
    digest = hashlib.sha256(json.dumps(planning.versions(), sort_keys=True).encode())
    if side == "ours":
        digest.update(planning.code_version().encode())
    else:
        for name in PEERS:
            digest.update((REPOSITORY / name).read_bytes())
    return digest.hexdigest()[:16]


def step_estimate(programs: Sequence[tuple[StepEstimate, int]]) -> StepEstimate:
    """The estimate of a step that runs programs one after another, each a number of times. Its
    memory is that of the largest.
    """
    first = programs[0][0]
    flops = [
        None if program.flops is None else program.flops * times for program, times in programs
    ]
    most_expensive = [
        replace(operation, cycles=operation.cycles * times)
        for program, times in programs
        for operation in program.most_expensive
    ]
    return StepEstimate(
        point=first.point,
        refused="",
        compile_seconds=sum(program.compile_seconds for program, _ in programs),
        cycles=sum(program.cycles * times for program, times in programs),
        flops=None if None in flops else sum(number or 0.0 for number in flops),
        bytes_accessed=sum(program.bytes_accessed * times for program, times in programs),
        memory=max((program.memory for program, _ in programs), key=lambda memory: memory.total),
        operations=sum(program.operations * times for program, times in programs),
        host_transfers=tuple(name for program, _ in programs for name in program.host_transfers),
        exchanges=sum(program.exchanges * times for program, times in programs),
        exchange_bytes=sum(program.exchange_bytes * times for program, times in programs),
        without_estimate=tuple(
            sorted({name for program, _ in programs for name in program.without_estimate})
        ),
        most_expensive=tuple(sorted(most_expensive, key=_by_cycles)[:MOST_EXPENSIVE]),
    )


def _by_cycles(operation: ExpensiveOperation) -> float:
    return -operation.cycles


def numbers(estimate: StepEstimate) -> dict[str, float | None]:
    """The numbers of an estimate, as a benchmark stores them."""
    return {
        "cycles": estimate.cycles,
        "step_ms": estimate.step_s * 1e3,
        "floor_ms": None if estimate.floor_s is None else estimate.floor_s * 1e3,
        "share_of_peak": estimate.share_of_peak,
        "exchanges": estimate.exchanges,
        "exchange_mb": estimate.exchange_bytes / 1e6,
        "operations": estimate.operations,
    }


def add_most_expensive(report: Report, kind: str, side: str, estimate: StepEstimate) -> None:
    """A record of each of the program's most expensive operations."""
    for operation in estimate.most_expensive:
        report.add(
            kind, side=side, layer=operation.layer, name=operation.name, cycles=operation.cycles
        )
