"""Memory of this process, in bytes."""

from __future__ import annotations

import resource
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil

STATUS = Path("/proc/self/status")


@dataclass(frozen=True)
class ProcessMemory:
    """Resident bytes now, and at most since the process began."""

    bytes: int
    peak_bytes: int


def process_memory() -> ProcessMemory:
    """What the operating system counts for this process, without its children."""
    now = int(psutil.Process().memory_info().rss)
    return ProcessMemory(now, max(now, _peak_bytes()))


def _peak_bytes() -> int:
    """VmHWM where there is one: getrusage also remembers the process from which this one was
    started.
    """
    if STATUS.exists():
        peaks = [
            line.split()[1]
            for line in STATUS.read_text(encoding="utf-8").splitlines()
            if line.startswith("VmHWM:")
        ]
        if peaks:
            return int(peaks[0]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
