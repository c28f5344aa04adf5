"""How many kernels and fusions a module of XLA has, counted in its text.

Pure functions, no framework.

HLO is XLA's language: a module is a list of computations, each of them a list of lines "name =
shape opcode(operands), …". An instruction of the entry computation does work, and so do those of
what it calls; instructions inside a fusion are one kernel together. Before XLA has optimized it, a
module has no fusions: each instruction would be a kernel of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_COMPUTATION = re.compile(r"^(?P<entry>ENTRY )?%?(?P<name>[\w.\-]+) .*\{$")
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?[\w.\-]+ = .+? (?P<opcode>[a-z][a-z0-9\-]*)\(")
# A kernel each; what other instructions name (a reduction's sum, a sort's order) is part of them.
_CALLED = re.compile(
    r"(?:to_apply|body|condition|true_computation|false_computation|branch_computations)=\{?([^,}]+(?:,"
    r" %[^,}]+)*)"
)
_CALLS = {"call", "while", "conditional", "async-start"}
# They name values or places and compute nothing.
_FREE = {
    "parameter",
    "constant",
    "tuple",
    "get-tuple-element",
    "bitcast",
    "after-all",
    "partition-id",
    "replica-id",
}


@dataclass(frozen=True)
class HloCounts:
    """`kernels`: instructions that do work; `fusions`: how many of them are fusions."""

    kernels: int
    fusions: int


def counted(module: str) -> HloCounts:
    """The counts of one module from its text; a loop's body counts once."""
    computations, entry = _computations(module.splitlines())
    return _sum(_count(computations, entry)) if entry else HloCounts(0, 0)


def total(several: Iterable[HloCounts]) -> HloCounts:
    """All of them together."""
    return _sum(several)


def _computations(lines: Iterable[str]) -> tuple[dict[str, list[tuple[str, str]]], str]:
    """Name → (opcode, line) of each instruction, and the name of the entry computation; "" in
    a text without one.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    name, entry = "", ""
    for line in lines:
        if computation := _COMPUTATION.match(line):
            name = computation["name"]
            found[name], entry = [], name if computation["entry"] else entry
        elif name and (instruction := _INSTRUCTION.match(line)):
            found[name].append((instruction["opcode"], line))
    return found, entry


def _count(computations: dict[str, list[tuple[str, str]]], name: str) -> Iterable[HloCounts]:
    for opcode, line in computations.get(name, []):
        if opcode in _CALLS:
            for names in _CALLED.findall(line):
                for called in names.split(", "):
                    yield from _count(computations, called.strip().removeprefix("%"))
        elif opcode not in _FREE:
            yield HloCounts(1, int(opcode == "fusion"))


def _sum(several: Iterable[HloCounts]) -> HloCounts:
    counts = list(several)
    return HloCounts(sum(one.kernels for one in counts), sum(one.fusions for one in counts))
