"""The cost of a TPU program, from its optimized text. Pure functions, no framework.

The TPU compiler writes its estimate, `estimated_cycles`, next to most instructions. A program of
many steps is one loop whose number of rounds is known only when it runs: one round is one step.
Loops inside it with a known number of rounds (gradient accumulation) count once per round.
Exchanges between devices and the device's random generator have no estimate and are listed
separately.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_COMPUTATION = re.compile(r"^(?P<entry>ENTRY )?%?(?P<name>[\w.\-]+) .*\{$")
_INSTRUCTION = re.compile(
    r"^\s+(?:ROOT )?%?(?P<name>[\w.\-]+) = (?P<shape>.+?)"
    r" (?P<opcode>[a-z][a-z0-9\-]*)\((?P<rest>.*)$"
)
_CYCLES = re.compile(r'"estimated_cycles":"?(\d+)')
_TRIPS = re.compile(r'"known_trip_count":\{"n":"?(\d+)')
_SOURCE = re.compile(r'op_name="([^"]*)"')
_TARGET = re.compile(r'custom_call_target="([^"]*)"')
_CALLED = re.compile(
    r"(?:to_apply|calls|body|true_computation|false_computation|branch_computations)=\{?([^,}]+(?:,"
    r" ?%[^,}]+)*)"
)
_ARRAY = re.compile(r"([a-z]+[0-9]*)\[([0-9,]*)\]")
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
_BITS = {"pred": 8, "bf16": 16}  # the names of other types end in their number of bits


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


@dataclass(frozen=True)
class _Line:
    name: str
    shape: str
    opcode: str
    text: str


def cost(module: str, steps: int, parts: int = 1) -> HloCost:
    """The cost of one of the `steps` steps of a program; they share the cost outside of the loop.

    `parts`: rounds of an inner loop whose number is not in the text.
    """
    computations, entry = _computations(module.splitlines())
    lines = list(_walk(computations, entry, 1.0 / steps, (steps, parts)))
    return HloCost(
        operations=tuple(
            operation
            for line, times in lines
            if (operation := _operation(line, times)).cycles is not None or _works_silently(line)
        ),
        exchanges=tuple(_exchange(line, times) for line, times in lines if _kind(line.opcode)),
        host_transfers=tuple(line.name for line, _ in lines if _leaves_device(line)),
    )


def _computations(lines: Iterable[str]) -> tuple[dict[str, list[_Line]], str]:
    computations: dict[str, list[_Line]] = {}
    name, entry = "", ""
    for text in lines:
        if computation := _COMPUTATION.match(text):
            name = computation["name"]
            computations[name], entry = [], name if computation["entry"] else entry
        elif name and (match := _INSTRUCTION.match(text)):
            line = _Line(match["name"], match["shape"], match["opcode"], text)
            computations[name].append(line)
    return computations, entry


def _walk(
    computations: dict[str, list[_Line]], name: str, times: float, rounds: tuple[int, ...]
) -> Iterator[tuple[_Line, float]]:
    """Every executed line, and how often per step.

    `rounds`: of loops without a known number of rounds, from the outermost inwards.
    """
    for line in computations.get(name, []):
        yield line, times
        often, inner = 1, rounds
        if line.opcode == "while":
            trips = _TRIPS.search(line.text)
            often, inner = (int(trips[1]), rounds) if trips else (rounds[0], rounds[1:] or (1,))
        if line.opcode in _CALLS:
            for called in _names(line.text):
                yield from _walk(computations, called, times * often, inner)


def _names(text: str) -> list[str]:
    return [
        name.strip().removeprefix("%")
        for names in _CALLED.findall(text)
        for name in names.split(",")
    ]


def _operation(line: _Line, times: float) -> Operation:
    cycles, source = _CYCLES.search(line.text), _SOURCE.search(line.text)
    return Operation(
        line.name,
        line.opcode,
        line.shape,
        source[1] if source else "",
        int(cycles[1]) * times if cycles else None,
    )


def _works_silently(line: _Line) -> bool:
    return line.opcode in _SILENT and not any(
        f'custom_call_target="{mark}"' in line.text for mark in _NO_WORK
    )


def _kind(opcode: str) -> str:
    """The kind of exchange that an opcode begins, such as all-reduce-start; "" for
    other opcodes.
    """
    return next((kind for kind in _EXCHANGES if opcode in (kind, f"{kind}-start")), "")


def _exchange(line: _Line, times: float) -> Exchange:
    kind = _kind(line.opcode)
    sizes = _array_bytes(line.shape)
    if kind == "reduce-scatter":  # the result is only a share, so the payload is in the operands
        sizes = _array_bytes(line.text.partition(f"{line.opcode}(")[2].partition("), ")[0]) or sizes
    elif line.opcode == "all-gather-start":  # (operand, result)
        sizes = sizes[len(sizes) // 2 :]
    return Exchange(kind, sum(sizes), times)


def _array_bytes(shape: str) -> list[int]:
    return [_bits(kind) * _elements(sides) // 8 for kind, sides in _ARRAY.findall(shape)]


def _bits(kind: str) -> int:
    return _BITS.get(kind) or int(re.sub(r"\D", "", kind) or 0)


def _elements(sides: str) -> int:
    count = 1
    for side in sides.split(",") if sides else []:
        count *= int(side)
    return count


def _leaves_device(line: _Line) -> bool:
    target = _TARGET.search(line.text)
    called = target is not None and any(part in target[1].lower() for part in _HOST_TARGETS)
    # Only sends to the host have this mark.
    return (
        line.opcode in _HOST and ("feed" in line.opcode or "is_host_transfer=true" in line.text)
    ) or called


# ---- where an operation comes from ---------------------------------------------------------------


def source_layer(op_name: str, networks: Sequence[str]) -> str:
    """The layer behind an operation, from JAX's path to it: "critic conv_1, backward"; ""
    where it names none of `networks`.
    """
    parts = op_name.split("/")
    words = [
        re.split(r"[()]", part) for part in parts
    ]  # of "transpose(jvp(critic))": transpose, jvp, critic
    named = {word for words_of_part in words for word in words_of_part}
    for network in networks:
        if f"optimizer_{network}" in named:
            return f"optimizer, {network}"
    if "all_reduce_gradients" in named:
        return "exchange of gradients"
    for index, words_of_part in enumerate(words):
        network = next((name for name in networks if name in words_of_part), "")
        if network:
            layer = next(
                (part for part in parts[index + 1 :] if re.fullmatch(r"[a-z]+(_\d+)?", part)), ""
            )
            way = (
                "backward"
                if any("transpose" in scope for scope in words[: index + 1])
                else "forward"
            )
            return f"{network} {layer}".strip() + f", {way}"
    return ""
