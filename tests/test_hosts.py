"""What is stored of the machine and the software that an attempt ran on."""

from __future__ import annotations

import os

import numpy as np

from gan_runtime import hosts

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
