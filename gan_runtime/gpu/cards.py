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
        title="NVIDIA V100 SXM2, 16 GB",
        capability=(7, 0),
        multiprocessors=80,
        clock_ghz=1.53,
        memory_bytes=16_935_682_048,
        memory_bytes_per_s=898.0e9,
        l2_bytes=6_291_456,
        shared_bytes=98_304,
        fpus=64,
    ),
    "a100": Card(
        title="NVIDIA A100 SXM4, 80 GB",
        capability=(8, 0),
        multiprocessors=108,
        clock_ghz=1.41,
        memory_bytes=85_100_068_864,
        memory_bytes_per_s=2039.0e9,
        l2_bytes=41_943_040,
        shared_bytes=167_936,
        fpus=64,
    ),
    "a6000": Card(
        title="NVIDIA RTX A6000",
        capability=(8, 6),
        multiprocessors=84,
        clock_ghz=1.8,
        memory_bytes=51_041_271_808,
        memory_bytes_per_s=768.1e9,
        l2_bytes=6_291_456,
        shared_bytes=102_400,
        fpus=128,
        threads=1536,
    ),
    "h100": Card(
        title="NVIDIA H100 SXM5, 80 GB",
        capability=(9, 0),
        multiprocessors=132,
        clock_ghz=1.98,
        memory_bytes=84_942_979_072,
        memory_bytes_per_s=3352.3e9,
        l2_bytes=52_428_800,
        shared_bytes=233_472,
        fpus=128,
    ),
    "h200": Card(
        title="NVIDIA H200",
        capability=(9, 0),
        multiprocessors=132,
        clock_ghz=1.98,
        memory_bytes=151_397_597_184,
        memory_bytes_per_s=4800.0e9,
        l2_bytes=52_428_800,
        shared_bytes=233_472,
        fpus=128,
    ),
    "b200": Card(
        title="NVIDIA B200",
        capability=(10, 0),
        multiprocessors=148,
        clock_ghz=1.965,
        memory_bytes=191_514_411_008,
        memory_bytes_per_s=7672.3e9,
        l2_bytes=132_644_864,
        shared_bytes=233_472,
        fpus=128,
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
