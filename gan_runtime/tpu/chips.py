"""The TPUs that the compiler can be asked about: cores, clock, peak rate, memory, interconnect,
each with its source.

All numbers are those of the makers' documents; none is measured here. Where no document gives one,
it is derived or assumed, and `Chip.assumed` says so. Imports no framework.
"""

from __future__ import annotations

from dataclasses import dataclass

GIB = 2**30
DOCS = "Google Cloud TPU documentation, page TPU"
SUPERCOMPUTER = (
    "Norrie et al. 2021, The Design Process for Google's Training Chips: TPUv2 and TPUv3, IEEE"
    " Micro 41(2)"
)
RECONFIGURABLE = "Jouppi et al. 2023, TPU v4, arXiv:2304.01433"
FROM_PEAK = "derived: peak rate / (4 matrix units of 128² × 2 operations a cycle and core)"
# The compiler (libtpu 0.0.42.1) reckons 369,000 (v6e) and 422,000 (TPU7x) operations a cycle for a
# product of 8192² matrices: more than two units of 256² could do, so four are taken.
FOUR_UNITS = "assumed: peak rate / (4 matrix units of 256² × 2 operations a cycle and core)"
LINKS = (
    "assumed: a 2 × 2 slice uses two links of a chip, each one way at half of its share of the"
    " documented two-way rate"
)


@dataclass(frozen=True)
class Chip:
    """One generation. Rates and memory are of a chip; its devices share them evenly.

    `devices`: what a program sees of a chip: its cores, or one where two cores act together.
    `clock_hz`: of a core. `peak_flops`: bfloat16 operations per second. `memory_bytes_per_s`: of
    the main memory (HBM).
    `link_bytes_per_s`: one way over one link to a neighbour. `sources` by field; `assumed`: what no
    document gives.
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
    """So many chips of one kind, named as the compiler names them."""

    name: str
    chip: Chip
    chips: int

    @property
    def devices(self) -> int:
        """How many replicas a run can have on it."""
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
    "TPU v2",
    2,
    0.70e9,
    45e12,
    16 * GIB,
    600e9,
    62e9,
    _sources("v2", SUPERCOMPUTER, f"{SUPERCOMPUTER}: 496 Gbit/s"),
)
V3 = Chip(
    "TPU v3",
    2,
    0.94e9,
    123e12,
    32 * GIB,
    900e9,
    82e9,
    _sources("v3", SUPERCOMPUTER, f"{SUPERCOMPUTER}: 656 Gbit/s"),
)
V4 = Chip(
    "TPU v4",
    2,
    1.05e9,
    275e12,
    32 * GIB,
    1200e9,
    50e9,
    _sources("v4", RECONFIGURABLE, f"{RECONFIGURABLE}: 50 GB/s"),
)
V5E = Chip(
    "TPU v5e",
    1,
    1.50e9,
    197e12,
    16 * GIB,
    819e9,
    50e9,
    _sources("v5e", FROM_PEAK, f"{DOCS} v5e: 400 GB/s; {LINKS}"),
    ("links",),
)
V5P = Chip(
    "TPU v5p",
    1,
    1.75e9,
    459e12,
    95 * GIB,
    2765e9,
    50e9,
    _sources("v5p", FROM_PEAK, f"{DOCS} v5p: 4800 Gbit/s; {LINKS}"),
    ("links",),
)
V6E = Chip(
    "TPU v6e",
    1,
    1.75e9,
    918e12,
    32 * GIB,
    1638e9,
    100e9,
    _sources("v6e", FOUR_UNITS, f"{DOCS} v6e: 800 GB/s; {LINKS}"),
    ("clock", "links"),
)
V7X = Chip(
    "TPU7x",
    2,
    2.2e9,
    2307e12,
    192 * GIB,
    7380e9,
    100e9,
    _sources("TPU7x", FOUR_UNITS, f"{DOCS} TPU7x: 1200 GB/s; {LINKS}"),
    ("clock", "links"),
)

TOPOLOGIES = {
    one.name: one
    for one in (
        Topology("v2:2x2", V2, 4),
        Topology("v3:2x2", V3, 4),
        Topology("v4:2x2x1", V4, 4),
        Topology("v5e:2x4", V5E, 8),
        Topology("v5p:2x2x1", V5P, 4),
        Topology("v6e:2x4", V6E, 8),
        Topology("tpu7x:2x2x1", V7X, 4),
    )
}
