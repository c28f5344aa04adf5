"""This host's processor: its name, and the arithmetic it knows.

Reads one file and loads no framework.
"""

from __future__ import annotations

import contextlib
import platform
from itertools import takewhile
from pathlib import Path

CPU_INFO = Path("/proc/cpuinfo")
ARITHMETIC = (
    "sse4",
    "avx",
    "amx",
    "fma",
    "f16c",
    "asimd",
    "sve",
    "bf16",
)  # beginnings of processor flags
BFLOAT16 = (
    "avx512f",
    "avx_ne_convert",
    "bf16",
)  # one of them, and oneDNN computes bfloat16 in vectors


def model() -> str:
    """The first processor's name, as far as the system tells it."""
    return _of_the_first().get("model name") or platform.processor() or platform.machine()


def flags() -> list[str]:
    """The arithmetic that the first processor knows: avx2, avx512_bf16, …; empty where the
    system does not tell.
    """
    told = _of_the_first()
    known = told.get("flags") or told.get("Features") or ""
    return sorted(flag for flag in known.split() if flag.startswith(ARITHMETIC))


def has_bfloat16() -> bool:
    """Whether TensorFlow multiplies bfloat16 in vector instructions here; without them it
    does so number by number.
    """
    return not set(BFLOAT16).isdisjoint(flags())


def _of_the_first() -> dict[str, str]:
    """Name → value of the first processor's lines.

    The others are not read: the system writes each of them when it is asked.
    """
    with contextlib.suppress(OSError), CPU_INFO.open(encoding="utf-8") as file:
        lines = (line.partition(":") for line in takewhile(str.strip, file))
        return {name.strip(): value.strip() for name, _, value in lines}
    return {}
