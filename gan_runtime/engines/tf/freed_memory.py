"""Keeps in the process what TensorFlow frees on the CPU within a step, for the next step to take.

glibc gives a thread's memory back to the system as soon as a region of 64 MB is free, and the next step asks for it again, page by page,
each one cleared by the kernel. A step of a small U-Net (tiles of 64 pixels, batch 16) took 5,250 such pages in float32, and a fifth of
its processor time was the system's. Peak memory stays as it is; only the memory between two peaks is no longer given back.
"""

from __future__ import annotations

import ctypes
import os

# Numbers of `mallopt`, malloc.h of glibc: how much at the end of a region may be free before it is given back, how much of it stays
# then (a whole region), and from what size on an array is a region of its own (glibc takes no more than half of one).
TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3
KEPT = {TRIM_THRESHOLD: 2**31 - 1, TOP_PAD: 64 * 2**20, MMAP_THRESHOLD: 32 * 2**20}
CHOSEN_BY_A_PERSON = ("MALLOC_", "GLIBC_TUNABLES")


def keep_freed_memory() -> bool:
    """Whether it does: not where a person has chosen for malloc, nor with another C library."""
    if any(name.startswith(CHOSEN_BY_A_PERSON) for name in os.environ):
        return False
    option = getattr(ctypes.CDLL(None), "mallopt", None)
    return option is not None and all(option(name, value) for name, value in KEPT.items())
