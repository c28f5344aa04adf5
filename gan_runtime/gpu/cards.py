"""The GPUs that XLA can compile for, described as its compiler reads them. Imports no framework.

Sizes are those that NVIDIA's driver reports, as XLA's own descriptions of these cards list them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Card:
    """One GPU. `capability`: of CUDA, "9.0" for Hopper. `shared_bytes`: shared memory of a
    multiprocessor. `fpus`: float32 units of a multiprocessor. `threads`: the most of one.
    """

    title: str
    capability: tuple[int, int]
    multiprocessors: int
    clock_ghz: float
    memory_bytes: int
    memory_bytes_per_s: float
    l2_bytes: int
    shared_bytes: int
    fpus: int
    threads: int = 2048

    @property
    def has_bfloat16(self) -> bool:
        """Whether it computes in bfloat16, from Ampere on."""
        return self.capability >= (8, 0)


CARDS = {
    "v100": Card(
        *("NVIDIA V100 SXM2, 16 GB", (7, 0), 80, 1.53, 16_935_682_048),
        *(898.0e9, 6_291_456, 98_304, 64),
    ),
    "a100": Card(
        *("NVIDIA A100 SXM4, 80 GB", (8, 0), 108, 1.41, 85_100_068_864),
        *(2039.0e9, 41_943_040, 167_936, 64),
    ),
    "a6000": Card(
        *("NVIDIA RTX A6000", (8, 6), 84, 1.8, 51_041_271_808),
        *(768.1e9, 6_291_456, 102_400, 128, 1536),
    ),
    "h100": Card(
        *("NVIDIA H100 SXM5, 80 GB", (9, 0), 132, 1.98, 84_942_979_072),
        *(3352.3e9, 52_428_800, 233_472, 128),
    ),
    "h200": Card(
        *("NVIDIA H200", (9, 0), 132, 1.98, 151_397_597_184),
        *(4800.0e9, 52_428_800, 233_472, 128),
    ),
    "b200": Card(
        *("NVIDIA B200", (10, 0), 148, 1.965, 191_514_411_008),
        *(7672.3e9, 132_644_864, 233_472, 128),
    ),
}
RESERVED_BYTES = 1024  # of a multiprocessor's shared memory, that no block can use
SPECIAL_FEATURES = (9, 0)  # from this capability on, cards have features that later ones lack


def description(card: Card) -> str:
    """The card as XLA's compiler reads it: a GpuTargetConfigProto as text."""
    major, minor = card.capability
    features = "ACCELERATED_FEATURES" if card.capability >= SPECIAL_FEATURES else "NONE"
    return f"""
gpu_device_info {{
  threads_per_block_limit: 1024
  threads_per_warp: 32
  shared_memory_per_block: 49152
  shared_memory_per_block_optin: {card.shared_bytes - RESERVED_BYTES}
  shared_memory_per_core: {card.shared_bytes}
  threads_per_core_limit: {card.threads}
  core_count: {card.multiprocessors}
  fpus_per_core: {card.fpus}
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  thread_dim_limit_x: 1024
  thread_dim_limit_y: 1024
  thread_dim_limit_z: 64
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
  memory_bandwidth: {card.memory_bytes_per_s:.0f}
  l2_cache_size: {card.l2_bytes}
  clock_rate_ghz: {card.clock_ghz}
  device_memory_size: {card.memory_bytes}
  cuda_compute_capability {{ major: {major} minor: {minor} feature_extension: {features} }}
  runtime_version: "12.8.0"
  compile_time_toolkit_version: "12.8.0"
  driver_version: "13.0.0"
  dnn_version: "9.10.0"
}}
platform_name: "CUDA"
dnn_version_info {{ major: 9 minor: 10 patch: 0 }}
device_description_str: "{card.title}"
"""
