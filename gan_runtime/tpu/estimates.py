"""The compiler's estimates of a program on a TPU, as records with a JSON form, and the supported
TPUs: cores, clock, peak rate, memory, interconnect.

All times are computed from the compiler's cycles; none is measured. The numbers of chips are those
of the makers' documents; where no document states one, it is derived or assumed, and `Chip.assumed`
lists it. Imports no framework.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

GIB = 2**30
DOCS = "Google Cloud TPU documentation, page TPU"
SUPERCOMPUTER = (
    "Norrie et al. 2021, The Design Process for Google's Training Chips: TPUv2 and TPUv3, IEEE"
    " Micro 41(2)"
)
RECONFIGURABLE = "Jouppi et al. 2023, TPU v4, arXiv:2304.01433"
FROM_PEAK = "derived: peak rate / (4 matrix units of 128² × 2 operations a cycle and core)"
# The compiler (libtpu 0.0.42.1) estimates 369,000 (v6e) and 422,000 (TPU7x) operations a cycle for
# a product of 8192² matrices: more than two units of 256² can do, so four are assumed.
FOUR_UNITS = "assumed: peak rate / (4 matrix units of 256² × 2 operations a cycle and core)"
ASSUMED_LINKS = (
    "assumed: a 2 × 2 slice uses two links of a chip; each has half of its share of the documented"
    " two-way rate"
)


@dataclass(frozen=True)
class Chip:
    """One generation. Rates and memory are of a chip; its devices share them evenly.

    `devices`: the devices of a chip: its cores, or one where two cores act together. `clock_hz`: of
    a core. `peak_flops`: bfloat16 operations per second. `memory_bytes_per_s`: of the main memory
    (HBM). `link_bytes_per_s`: one way over one link to a neighbor. `sources`: by field. `assumed`:
    fields that no document states.
    """

    title: str
    devices: int
    clock_hz: float
    peak_flops: float
    memory_bytes: int
    memory_bytes_per_s: float
    link_bytes_per_s: float
    sources: dict[str, str]
    assumed: tuple[str, ...] = ()

    @property
    def device_peak_flops(self) -> float:
        """bfloat16 operations per second of one device."""
        return self.peak_flops / self.devices

    @property
    def device_memory_bytes(self) -> float:
        """Main memory of one device."""
        return self.memory_bytes / self.devices


@dataclass(frozen=True)
class Topology:
    """Chips of one generation in a slice, named as the compiler names it."""

    name: str
    chip: Chip
    chips: int

    @property
    def devices(self) -> int:
        """The most replicas that a run can have on it."""
        return self.chips * self.chip.devices


def _sources(page: str, clock: str, links: str) -> dict[str, str]:
    document = f"{DOCS} {page}"
    return {
        "peak_flops": document,
        "memory": document,
        "clock_hz": clock,
        "link_bytes_per_s": links,
    }


V2 = Chip(
    *("TPU v2", 2, 0.70e9, 45e12, 16 * GIB, 600e9, 62e9),
    _sources("v2", SUPERCOMPUTER, f"{SUPERCOMPUTER}: 496 Gbit/s"),
)
V3 = Chip(
    *("TPU v3", 2, 0.94e9, 123e12, 32 * GIB, 900e9, 82e9),
    _sources("v3", SUPERCOMPUTER, f"{SUPERCOMPUTER}: 656 Gbit/s"),
)
V4 = Chip(
    *("TPU v4", 2, 1.05e9, 275e12, 32 * GIB, 1200e9, 50e9),
    _sources("v4", RECONFIGURABLE, f"{RECONFIGURABLE}: 50 GB/s"),
)
V5E = Chip(
    *("TPU v5e", 1, 1.50e9, 197e12, 16 * GIB, 819e9, 50e9),
    _sources("v5e", FROM_PEAK, f"{DOCS} v5e: 400 GB/s; {ASSUMED_LINKS}"),
    ("links",),
)
V5P = Chip(
    *("TPU v5p", 1, 1.75e9, 459e12, 95 * GIB, 2765e9, 50e9),
    _sources("v5p", FROM_PEAK, f"{DOCS} v5p: 4800 Gbit/s; {ASSUMED_LINKS}"),
    ("links",),
)
V6E = Chip(
    *("TPU v6e", 1, 1.75e9, 918e12, 32 * GIB, 1638e9, 100e9),
    _sources("v6e", FOUR_UNITS, f"{DOCS} v6e: 800 GB/s; {ASSUMED_LINKS}"),
    ("clock", "links"),
)
V7X = Chip(
    *("TPU7x", 2, 2.2e9, 2307e12, 192 * GIB, 7380e9, 100e9),
    _sources("TPU7x", FOUR_UNITS, f"{DOCS} TPU7x: 1200 GB/s; {ASSUMED_LINKS}"),
    ("clock", "links"),
)

TOPOLOGIES = {
    topology.name: topology
    for topology in (
        Topology("v2:2x2", V2, 4),
        Topology("v3:2x2", V3, 4),
        Topology("v4:2x2x1", V4, 4),
        Topology("v5e:2x4", V5E, 8),
        Topology("v5p:2x2x1", V5P, 4),
        Topology("v6e:2x4", V6E, 8),
        Topology("tpu7x:2x2x1", V7X, 4),
    )
}


# ---- estimates -----------------------------------------------------------------------------------

ESTIMATE = "the compiler's estimate, not a measurement"
EXCHANGE_ESTIMATE = (
    "our estimate from bytes, link rate and an assumed latency; the compiler has none"
)
EXCHANGE_LATENCY_S = 10e-6  # assumed, of each exchange between devices
LINKS = 2  # assumed: links of a chip in a 2 × 2 or 2 × 4 slice that carry an exchange
HOST_OVERHEAD_S = 1e-3  # assumed, of each host call: the default of the page's slider


@dataclass(frozen=True)
class Point:
    """One program to compile. `devices`: TPU cores that share the batch."""

    topology: str
    devices: int
    batch_size_global: int
    precision: str

    @property
    def shared(self) -> str:
        """The batch and devices as text, such as "batch 512 on 8 cores"."""
        return (
            f"batch {self.batch_size_global} on {self.devices}"
            f" core{'s' if self.devices > 1 else ''}"
        )


@dataclass(frozen=True)
class ExpensiveOperation:
    """One operation of a step. `cycles`: per step. `layer`: "" where the compiler names none."""

    name: str
    opcode: str
    layer: str
    cycles: float


@dataclass(frozen=True)
class ProgramMemory:
    """Bytes on one device.

    `arguments` hold weights, optimizer and the data set; `temporary` is used during a step.
    """

    arguments: int
    temporary: int
    program: int
    outputs: int  # beyond the arguments that they overwrite

    @classmethod
    def of(cls, analysis: Any) -> ProgramMemory:
        """From XLA's memory analysis of a compiled program."""
        return cls(
            arguments=analysis.argument_size_in_bytes,
            temporary=analysis.temp_size_in_bytes,
            program=analysis.generated_code_size_in_bytes,
            outputs=analysis.output_size_in_bytes - analysis.alias_size_in_bytes,
        )

    @property
    def total(self) -> int:
        """The sum of all parts."""
        return self.arguments + self.temporary + self.program + self.outputs


@dataclass(frozen=True)
class StepEstimate:
    """One compiled program, per step and device.

    `refused`: the compiler's reason, with all numbers zero; "" when it compiled.

    `flops`: None where the compiler does not count them (gradient accumulation). `exchange_bytes`:
    payload of the exchanges of a step. `without_estimate`: kinds of operations for which the
    compiler has no cycles.
    """

    point: Point
    refused: str
    compile_seconds: float
    cycles: float = 0.0
    flops: float | None = None
    bytes_accessed: float = 0.0
    memory: ProgramMemory = ProgramMemory(0, 0, 0, 0)
    operations: int = 0
    host_transfers: tuple[str, ...] = ()
    exchanges: float = 0.0
    exchange_bytes: int = 0
    without_estimate: tuple[str, ...] = ()
    most_expensive: tuple[ExpensiveOperation, ...] = ()

    @property
    def topology(self) -> Topology:
        """The TPU it was compiled for."""
        return TOPOLOGIES[self.point.topology]

    @property
    def compiled(self) -> bool:
        """Whether the compiler accepted it."""
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
        """Seconds of a step if the matrix units were always busy."""
        return None if self.flops is None else self.flops / self.topology.chip.device_peak_flops

    @property
    def share_of_peak(self) -> float | None:
        """The arithmetic of the step relative to the chip's peak in the same time, 0 to 1."""
        return None if self.floor_s is None or not self.cycles else self.floor_s / self.step_s

    @property
    def share_of_memory(self) -> float:
        """Memory of the program over that of the device; above 1 it does not fit."""
        return self.memory.total / self.topology.chip.device_memory_bytes

    def epoch_s(
        self, steps: int, steps_per_call: int, overhead_s: float = HOST_OVERHEAD_S
    ) -> float:
        """Seconds of an epoch of `steps`, with exchanges and an assumed overhead of each host
        call.
        """
        return steps * (self.step_s + self.exchange_s) + -(-steps // steps_per_call) * overhead_s


def to_json(estimate: StepEstimate) -> dict[str, Any]:
    """Plain values, for `from_json`."""
    return asdict(estimate)


def from_json(values: dict[str, Any]) -> StepEstimate:
    """The inverse of `to_json`.

    Raises TypeError or KeyError for a record of another version of the program.
    """
    return StepEstimate(
        **{
            **values,
            "point": Point(**values["point"]),
            "memory": ProgramMemory(**values["memory"]),
            "host_transfers": tuple(values["host_transfers"]),
            "without_estimate": tuple(values["without_estimate"]),
            "most_expensive": tuple(
                ExpensiveOperation(**operation) for operation in values["most_expensive"]
            ),
        }
    )
