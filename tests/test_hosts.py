"""What is stored of the machine and the software that an attempt ran on."""

from __future__ import annotations

import os

import numpy as np

from gan_runtime import hosts
from gan_runtime.hosts import NO_CORE, Device, Host

CPU_INFO = """processor	: 0
model name	: Some CPU
flags		: fpu sse4_2 avx512_bf16 avx2 amx_bf16 hypervisor

processor	: 1
flags		: fpu avx2 avx512f
"""


def test_flags_that_matter_for_arithmetic_are_told_of_the_first_processor() -> None:
    assert hosts.cpu_flags(CPU_INFO) == ["amx_bf16", "avx2", "avx512_bf16", "sse4_2"]
    assert hosts.cpu_flags("processor : 0\nFeatures : fp asimd bf16 crc32\n") == ["asimd", "bf16"]
    assert hosts.cpu_flags("") == []


def test_facts_name_the_machine_and_the_versions_of_what_is_imported() -> None:
    facts = hosts.facts()
    versions = facts["versions"]
    assert isinstance(versions, dict)
    assert versions["numpy"] == np.__version__
    assert "jax" not in versions, "jax is not imported here, whether installed or not"
    assert facts["cores"] == os.cpu_count()
    assert facts["uncommitted_changes"] in (True, False, None)


def with_tpu(host: Host, reason: str) -> Host:
    absent = Device(available=False, count=0, name="", reason=reason)
    return host.model_copy(update={"devices": {**host.devices, "tpu": absent}})


def test_a_tpu_that_shows_no_core_is_explained_by_what_libtpu_printed(host: Host) -> None:
    said = (
        "W0000 tpu: ABORTED: The TPU is already in use by process with pid 77. Not attempting to load libtpu.so in this process."
    )
    found = hosts.explained(with_tpu(host, NO_CORE), said).devices["tpu"]
    assert found.reason.startswith("another process holds the TPU, and only one can")
    assert hosts.explained(with_tpu(host, NO_CORE), "nothing of it").devices["tpu"].reason == NO_CORE


def test_a_host_without_a_tpu_keeps_its_reason_whatever_is_printed(host: Host) -> None:
    there = with_tpu(host, "this host has no TPU.")
    assert hosts.explained(there, "libtpu said something") == there
