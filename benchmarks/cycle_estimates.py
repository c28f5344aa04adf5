"""The TPU compiler's estimates of single programs, and their sums for a whole step.

An estimate can take minutes, so each is cached at once in `benchmarks/kept/`, which git ignores.
The file name has the program's arguments and a digest of its code, its libraries and the compiler.
An interrupted row resumes where it stopped. Cycles do not depend on the machine, so a cached
estimate never expires.
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
TIMEOUT_S = 3_600.0  # per program; the slowest takes a few minutes on an idle core
MOST_EXPENSIVE = 10
# The code of the plain Keras programs; `planning.code_version` covers ours.
PEER_FILES = (
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


def estimate_in_child(arguments: list[str]) -> dict[str, Any]:
    """The estimate of cycles_side.py as JSON. Raises NotMeasuredError, also after TIMEOUT_S."""
    return answer_of(["-m", "benchmarks.cycles_side", *arguments], TIMEOUT_S)


@dataclass(frozen=True)
class EstimateCache:
    """Estimates stored in `folder`; `compile` computes a missing one."""

    folder: Path = FOLDER
    compile: Callable[[list[str]], dict[str, Any]] = estimate_in_child

    def estimate(
        self, program: str, side: str, topology: str, batch: int, precision: str
    ) -> StepEstimate:
        """The estimate of a program, by the arguments of cycles_side. Raises NotMeasuredError."""
        arguments = [program, side, topology, str(batch), precision]
        path = self.folder / f"{'-'.join(arguments).replace(':', '.')}-{_code_digest(side)}.json"
        if not path.exists():
            estimate = self.compile(arguments)
            self.folder.mkdir(exist_ok=True)
            write_json(path, estimate)
        return estimates.from_json(json.loads(path.read_text(encoding="utf-8")))


def _code_digest(side: str) -> str:
    """A digest of versions and code that the programs of a side depend on."""
    digest = hashlib.sha256(json.dumps(planning.versions(), sort_keys=True).encode())
    if side == "ours":
        digest.update(planning.code_version().encode())
    else:
        for name in PEER_FILES:
            digest.update((REPOSITORY / name).read_bytes())
    return digest.hexdigest()[:16]


def step_estimate(programs: Sequence[tuple[StepEstimate, int]]) -> StepEstimate:
    """The estimate of a step that runs each program a number of times, one after another.
    Its memory is that of the largest program.
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
    """Adds a record for each of the most expensive operations."""
    for operation in estimate.most_expensive:
        report.add(
            kind, side=side, layer=operation.layer, name=operation.name, cycles=operation.cycles
        )
