"""What a compile check found, as frozen records that go to JSON and back, and the arithmetic on
them. Imports no framework.

Every time in here is reckoned from the compiler's cycles; none is a measurement. `ESTIMATE` is the
label that goes with them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from gan_runtime.tpu.chips import TOPOLOGIES, Topology

ESTIMATE = "the compiler's estimate, not a measurement"
EXCHANGE_ESTIMATE = (
    "our estimate from bytes, link rate and an assumed latency; the compiler gives none"
)
EXCHANGE_LATENCY_S = 10e-6  # assumed, of each exchange between devices
LINKS = 2  # of a chip in a 2 × 2 or 2 × 4 slice that carry an exchange: assumed
HOST_OVERHEAD_S = 1e-3  # assumed, of each host call: what the slider of the page begins with


@dataclass(frozen=True)
class Point:
    """One program to compile. `devices`: TPU cores that share the batch."""

    topology: str
    devices: int
    batch_size_global: int
    precision: str

    @property
    def shared(self) -> str:
        """Such as "batch 512 on 8 cores"."""
        return (
            f"batch {self.batch_size_global} on {self.devices}"
            f" core{'s' if self.devices > 1 else ''}"
        )


@dataclass(frozen=True)
class DearOperation:
    """One operation of a step.

    `cycles` per step; `layer` in words, "" where the compiler names none.
    """

    name: str
    opcode: str
    layer: str
    cycles: float


@dataclass(frozen=True)
class Memory:
    """Bytes on one device.

    `arguments` hold weights, optimizer and the data set; `temporary` is needed during a step.
    """

    arguments: int
    temporary: int
    program: int
    outputs: int  # beyond the arguments that they overwrite

    @property
    def total(self) -> int:
        """All of it together."""
        return self.arguments + self.temporary + self.program + self.outputs


@dataclass(frozen=True)
class StepEstimate:
    """One compiled program, per step and device.

    `refused`: the compiler's reason, with all numbers zero; "" when it compiled.

    `flops`: None where the compiler does not count them (gradient accumulation). `ring_bytes`: what
    one device sends in the exchanges of a step. `without_estimate`: kinds of operations for which
    the compiler gives no cycles.
    """

    point: Point
    refused: str
    compile_seconds: float
    cycles: float = 0.0
    flops: float | None = None
    bytes_accessed: float = 0.0
    memory: Memory = Memory(0, 0, 0, 0)
    operations: int = 0
    host_transfers: tuple[str, ...] = ()
    exchanges: float = 0.0
    exchange_bytes: int = 0
    without_estimate: tuple[str, ...] = ()
    dearest: tuple[DearOperation, ...] = ()

    @property
    def topology(self) -> Topology:
        """The TPU it was compiled for."""
        return TOPOLOGIES[self.point.topology]

    @property
    def compiled(self) -> bool:
        """Whether the compiler took it."""
        return not self.refused

    @property
    def step_s(self) -> float:
        """Seconds of one step on one device: cycles by clock, without exchanges."""
        return self.cycles / self.topology.chip.clock_hz

    @property
    def exchange_s(self) -> float:
        """Estimated seconds of the exchanges of a step: a ring over the devices, and a
        latency for each.
        """
        devices, chip = self.point.devices, self.topology.chip
        if devices == 1:
            return 0.0
        sent = 2.0 * (devices - 1) / devices * self.exchange_bytes
        return sent / (LINKS * chip.link_bytes_per_s) + self.exchanges * EXCHANGE_LATENCY_S

    @property
    def floor_s(self) -> float | None:
        """Seconds of a step if the matrix units worked all the time."""
        return None if self.flops is None else self.flops / self.topology.chip.device_peak_flops

    @property
    def share_of_peak(self) -> float | None:
        """Arithmetic of the step by what the chip could do in its time; 0 to 1."""
        return None if self.floor_s is None or not self.cycles else self.floor_s / self.step_s

    @property
    def share_of_memory(self) -> float:
        """Memory needed by memory there; above 1 it does not fit."""
        return self.memory.total / self.topology.chip.device_memory_bytes

    def epoch_s(
        self, steps: int, steps_per_call: int, overhead_s: float = HOST_OVERHEAD_S
    ) -> float:
        """Seconds of an epoch of so many steps (`Plan.steps_per_epoch`), exchanges and an assumed
        overhead of each host call included.
        """
        return steps * (self.step_s + self.exchange_s) + -(-steps // steps_per_call) * overhead_s


def to_json(estimate: StepEstimate) -> dict[str, Any]:
    """As plain values, which `from_json` reads again."""
    return asdict(estimate)


def from_json(values: dict[str, Any]) -> StepEstimate:
    """The record that `to_json` made.

    Raises TypeError or KeyError when another version of the code has made it.
    """
    return StepEstimate(
        **{
            **values,
            "point": Point(**values["point"]),
            "memory": Memory(**values["memory"]),
            "host_transfers": tuple(values["host_transfers"]),
            "without_estimate": tuple(values["without_estimate"]),
            "dearest": tuple(DearOperation(**one) for one in values["dearest"]),
        }
    )
