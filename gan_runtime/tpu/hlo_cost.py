"""The cost of a TPU program, from its optimized text. Pure functions, no framework.

The TPU compiler writes its estimate, `estimated_cycles`, next to most instructions. A program of
many steps is one loop whose number of rounds is known only when it runs: one round is one step.
Loops inside it with a known number of rounds (gradient accumulation) count once per round.
Exchanges between devices and the device's random generator have no estimate and are listed
separately.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gan_runtime.engines import hlo_text
from gan_runtime.engines.hlo_text import Instruction, array_bytes

_CYCLES = re.compile(r'"estimated_cycles":"?(\d+)')
_CALLED = re.compile(
    r"(?:to_apply|calls|body|true_computation|false_computation|branch_computations)=\{?([^,}]+(?:,"
    r" ?%[^,}]+)*)"
)
_CALLS = {"while", "call", "conditional", "async-start"}
_HOST = {"infeed", "outfeed", "send", "recv"}
_HOST_TARGETS = ("callback", "host")  # parts of the names of custom calls that leave the device
_EXCHANGES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")
# Instructions that do work, but can lack an estimate.
_SILENT = ("rng-bit-generator", "custom-call", "sort")
_NO_WORK = (
    "AssumeGatherIndicesInBound",
    "X64Combine",
    "X64SplitLow",
    "X64SplitHigh",
)  # custom calls


@dataclass(frozen=True)
class Operation:
    """One instruction of a step.

    `cycles`: the compiler's estimate over all its rounds in a step; None where it gives none.
    """

    name: str
    opcode: str
    shape: str
    source: str
    cycles: float | None


@dataclass(frozen=True)
class Exchange:
    """One exchange between devices.

    `payload_bytes`: of the whole array that is summed or gathered.
    """

    kind: str
    payload_bytes: int
    times: float


@dataclass(frozen=True)
class HloCost:
    """The cost of one step on one device. `host_transfers`: names of transfers to the host."""

    operations: tuple[Operation, ...]
    exchanges: tuple[Exchange, ...]
    host_transfers: tuple[str, ...]

    @property
    def cycles(self) -> float:
        """The sum over all operations."""
        return sum(operation.cycles or 0.0 for operation in self.operations)

    @property
    def silent(self) -> tuple[str, ...]:
        """Opcodes that do work but come without an estimate."""
        silent = {operation.opcode for operation in self.operations if operation.cycles is None}
        return tuple(sorted(silent))

    def most_expensive(self, count: int = 10) -> tuple[Operation, ...]:
        """The operations with the most cycles, in falling order."""
        by_cycles = sorted(self.operations, key=lambda operation: -(operation.cycles or 0.0))
        return tuple(by_cycles[:count])


def cost(module: str, steps: int, parts: int = 1) -> HloCost:
    """The cost of one of the `steps` steps of a program; they share the cost outside of the loop.

    `parts`: rounds of an inner loop whose number is not in the text.
    """
    program = hlo_text.parsed(module)
    lines = list(_walk(program.computations, program.entry, 1.0 / steps, (steps, parts)))
    return HloCost(
        operations=tuple(
            operation
            for line, times in lines
            if (operation := _operation(line, times)).cycles is not None or _works_silently(line)
        ),
        exchanges=tuple(_exchange(line, times) for line, times in lines if _kind(line.opcode)),
        host_transfers=tuple(line.name for line, _ in lines if _leaves_device(line)),
    )


def _walk(
    computations: dict[str, list[Instruction]], name: str, times: float, rounds: tuple[int, ...]
) -> Iterator[tuple[Instruction, float]]:
    """Every executed line, and how often per step.

    `rounds`: of loops without a known number of rounds, from the outermost inwards.
    """
    for line in computations.get(name, []):
        yield line, times
        often, inner = 1, rounds
        if line.opcode == "while":
            known, counted = line.trips, (rounds[0], rounds[1:] or (1,))
            often, inner = counted if known is None else (known, rounds)
        if line.opcode in _CALLS:
            for called in _names(line.text):
                yield from _walk(computations, called, times * often, inner)


def _names(text: str) -> list[str]:
    return [
        name.strip().removeprefix("%")
        for names in _CALLED.findall(text)
        for name in names.split(",")
    ]


def _operation(line: Instruction, times: float) -> Operation:
    cycles = _CYCLES.search(line.text)
    return Operation(
        line.name,
        line.opcode,
        line.shape,
        line.source,
        int(cycles[1]) * times if cycles else None,
    )


def _works_silently(line: Instruction) -> bool:
    return line.opcode in _SILENT and not any(
        f'custom_call_target="{mark}"' in line.text for mark in _NO_WORK
    )


def _kind(opcode: str) -> str:
    """The kind of exchange that an opcode begins, such as all-reduce-start; "" for
    other opcodes.
    """
    return next((kind for kind in _EXCHANGES if opcode in (kind, f"{kind}-start")), "")


def _exchange(line: Instruction, times: float) -> Exchange:
    kind = _kind(line.opcode)
    sizes = array_bytes(line.shape)
    if kind == "reduce-scatter":  # the result is only a share, so the payload is in the operands
        sizes = array_bytes(line.operands) or sizes
    elif line.opcode == "all-gather-start":  # (operand, result)
        sizes = sizes[len(sizes) // 2 :]
    return Exchange(kind, sum(sizes), times)


def _leaves_device(line: Instruction) -> bool:
    called = any(part in line.target.lower() for part in _HOST_TARGETS)
    # Only sends to the host have this mark.
    return (
        line.opcode in _HOST and ("feed" in line.opcode or "is_host_transfer=true" in line.text)
    ) or called
