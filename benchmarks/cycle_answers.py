"""What the TPU's compiler answers about one program of the rows of cycles, and answers of programs
put together to a step.

An answer that took the compiler minutes is kept in benchmarks/kept/ (not part of the repository) as
it comes, under a name made of what the program is made of: its arguments, the versions of the
compiler and of what feeds it, and the code behind it. A row that was interrupted goes on where it
was. Cycles do not depend on the machine, so a kept answer is as good as a new one.
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
LONGEST_S = 3_600.0  # of one program: the longest takes some minutes of an idle core
DEAREST = 10
# What the plain Keras programs and their reading are made of; ours: see `planning.code_version`.
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
    """Of cycles_side.py. Raises NotMeasuredError, also when it takes longer than LONGEST_S."""
    return answer_of(["-m", "benchmarks.cycles_side", *arguments], LONGEST_S)


@dataclass(frozen=True)
class Answers:
    """Kept in `folder`; what is not there yet `asked` is asked, and kept at once."""

    folder: Path = FOLDER
    asked: Callable[[list[str]], dict[str, Any]] = from_child

    def of(
        self, program: str, side: str, topology: str, batch: int, precision: str
    ) -> StepEstimate:
        """See cycles_side.py for what these may be. Raises NotMeasuredError."""
        arguments = [program, side, topology, str(batch), precision]
        path = self.folder / f"{'-'.join(arguments).replace(':', '.')}-{_made_of(side)}.json"
        if not path.exists():
            found = self.asked(arguments)
            self.folder.mkdir(exist_ok=True)
            write_json(path, found)
        return estimates.from_json(json.loads(path.read_text(encoding="utf-8")))


def _made_of(side: str) -> str:
    digest = hashlib.sha256(json.dumps(planning.versions(), sort_keys=True).encode())
    if side == "ours":
        digest.update(planning.code_version().encode())
    else:
        for name in PEERS:
            digest.update((REPOSITORY / name).read_bytes())
    return digest.hexdigest()[:16]


def together(programs: Sequence[tuple[StepEstimate, int]]) -> StepEstimate:
    """A step that runs programs one after another, each so often.

    Its memory is that of the largest.
    """
    first = programs[0][0]
    flops = [None if one.flops is None else one.flops * times for one, times in programs]
    dearest = [
        replace(operation, cycles=operation.cycles * times)
        for one, times in programs
        for operation in one.dearest
    ]
    return StepEstimate(
        point=first.point,
        refused="",
        compile_seconds=sum(one.compile_seconds for one, _ in programs),
        cycles=sum(one.cycles * times for one, times in programs),
        flops=None if None in flops else sum(one or 0.0 for one in flops),
        bytes_accessed=sum(one.bytes_accessed * times for one, times in programs),
        memory=max((one.memory for one, _ in programs), key=lambda memory: memory.total),
        operations=sum(one.operations * times for one, times in programs),
        host_transfers=tuple(name for one, _ in programs for name in one.host_transfers),
        exchanges=sum(one.exchanges * times for one, times in programs),
        exchange_bytes=sum(one.exchange_bytes * times for one, times in programs),
        without_estimate=tuple(
            sorted({name for one, _ in programs for name in one.without_estimate})
        ),
        dearest=tuple(sorted(dearest, key=_cheapness)[:DEAREST]),
    )


def _cheapness(operation: ExpensiveOperation) -> float:
    return -operation.cycles


def numbers(one: StepEstimate) -> dict[str, float | None]:
    """As they stand in a record of a row."""
    return {
        "cycles": one.cycles,
        "step_ms": one.step_s * 1e3,
        "floor_ms": None if one.floor_s is None else one.floor_s * 1e3,
        "share_of_peak": one.share_of_peak,
        "exchanges": one.exchanges,
        "exchange_mb": one.exchange_bytes / 1e6,
        "operations": one.operations,
    }


def add_dearest(report: Report, kind: str, side: str, one: StepEstimate) -> None:
    """A record of each of the program's dearest operations."""
    for operation in one.dearest:
        report.add(
            kind, side=side, layer=operation.layer, name=operation.name, cycles=operation.cycles
        )
