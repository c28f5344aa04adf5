"""The processor of this machine."""

from __future__ import annotations

import contextlib
import platform
from itertools import takewhile
from pathlib import Path

INFO = Path("/proc/cpuinfo")
FLAG_PREFIXES = ("sse4", "avx", "amx", "fma", "f16c", "asimd", "sve", "bf16")


def model() -> str:
    """The name of the first processor."""
    return _info().get("model name") or platform.processor() or platform.machine()


def flags() -> list[str]:
    """The vector instructions of the first processor: avx2, avx512_bf16, …; empty where the
    system does not list them.
    """
    info = _info()
    words = info.get("flags") or info.get("Features") or ""
    return sorted(flag for flag in words.split() if flag.startswith(FLAG_PREFIXES))


def _info() -> dict[str, str]:
    """Name → value for the first processor of /proc/cpuinfo; the system generates each further one
    on demand, which takes time.
    """
    with contextlib.suppress(OSError), INFO.open(encoding="utf-8") as file:
        lines = (line.partition(":") for line in takewhile(str.strip, file))
        return {name.strip(): value.strip() for name, _, value in lines}
    return {}
