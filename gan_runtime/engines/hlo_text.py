"""The text of XLA's programs: computations, their instructions, and the layers behind them. Pure
functions, no framework.

HLO is XLA's language: a module is a list of computations, each of them a list of lines "name =
shape opcode(operands), …".
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

_COMPUTATION = re.compile(r"^(?P<entry>ENTRY )?%?(?P<name>[\w.\-]+) .*\{$")
_INSTRUCTION = re.compile(
    r"^\s+(?:ROOT )?%?(?P<name>[\w.\-]+) = (?P<shape>.+?)"
    r" (?P<opcode>[a-z][a-z0-9\-]*)\((?P<rest>.*)$"
)
_SOURCE = re.compile(r'op_name="([^"]*)"')
_TARGET = re.compile(r'custom_call_target="([^"]*)"')
_TRIPS = re.compile(r'"known_trip_count":\{"n":"?(\d+)')
_ARRAY = re.compile(r"([a-z]+[0-9]*)\[([0-9,]*)\]")
_BITS = {"pred": 8, "bf16": 16}  # the names of other types end in their number of bits
# Instructions that compute nothing.
FREE = frozenset(
    {
        "parameter",
        "constant",
        "tuple",
        "get-tuple-element",
        "bitcast",
        "after-all",
        "partition-id",
        "replica-id",
    }
)


@dataclass(frozen=True)
class Instruction:
    """One line of a computation. `text`: the whole line."""

    name: str
    shape: str
    opcode: str
    text: str

    @property
    def source(self) -> str:
        """JAX's path to the operation; "" where the compiler names none."""
        source = _SOURCE.search(self.text)
        return source[1] if source else ""

    @property
    def target(self) -> str:
        """The library function of a custom call, or ""."""
        target = _TARGET.search(self.text)
        return target[1] if target else ""

    @property
    def trips(self) -> int | None:
        """The rounds of a loop; None where the text does not say."""
        trips = _TRIPS.search(self.text)
        return int(trips[1]) if trips else None

    @property
    def operands(self) -> str:
        """The text of its operands, without its attributes."""
        return self.text.partition(f" {self.opcode}(")[2].partition("), ")[0].removesuffix(")")


@dataclass(frozen=True)
class Module:
    """The computations by name, and the name of the first one, "" if there is none."""

    computations: dict[str, list[Instruction]]
    entry: str


def parsed(text: str) -> Module:
    """A module from its text."""
    computations: dict[str, list[Instruction]] = {}
    name, entry = "", ""
    for line in text.splitlines():
        if computation := _COMPUTATION.match(line):
            name = computation["name"]
            computations[name], entry = [], name if computation["entry"] else entry
        elif name and (match := _INSTRUCTION.match(line)):
            instruction = Instruction(match["name"], match["shape"], match["opcode"], line)
            computations[name].append(instruction)
    return Module(computations, entry)


def array_bytes(shape: str) -> list[int]:
    """The bytes of each array that a text names: "(f32[2,3], pred[4])" → [24, 4]."""
    return [_bits(kind) * _elements(sides) // 8 for kind, sides in _ARRAY.findall(shape)]


def _bits(kind: str) -> int:
    return _BITS.get(kind) or int(re.sub(r"\D", "", kind) or 0)


def _elements(sides: str) -> int:
    return math.prod(int(side) for side in sides.split(",")) if sides else 1


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
