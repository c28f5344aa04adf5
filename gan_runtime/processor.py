"""This host's processor: its name, and the arithmetic it knows. Reads one file and loads no framework."""

from __future__ import annotations

import platform
from pathlib import Path

CPU_INFO = Path("/proc/cpuinfo")
ARITHMETIC = ("sse4", "avx", "amx", "fma", "f16c", "asimd", "sve", "bf16")  # beginnings of processor flags
BFLOAT16 = ("avx512f", "avx_ne_convert", "bf16")  # one of them, and oneDNN computes bfloat16 in vectors


def model() -> str:
    """The first processor's name, as far as the system tells it."""
    names = _values("model name")
    return names[0] if names else platform.processor() or platform.machine()


def flags() -> list[str]:
    """The arithmetic that the first processor knows: avx2, avx512_bf16, …; empty where the system does not tell."""
    known = (*_values("flags"), *_values("Features"))[:1]
    return sorted(flag for line in known for flag in line.split() if flag.startswith(ARITHMETIC))


def has_bfloat16() -> bool:
    """Whether TensorFlow multiplies bfloat16 in vector instructions here; without them it does so number by number."""
    return not set(BFLOAT16).isdisjoint(flags())


def _values(name: str) -> list[str]:
    """What stands under a name in /proc/cpuinfo, once for each core."""
    if not CPU_INFO.exists():
        return []
    lines = (line.partition(":") for line in CPU_INFO.read_text(encoding="utf-8").splitlines())
    return [value.strip() for key, _, value in lines if key.strip() == name]
