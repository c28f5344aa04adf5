"""Memory that the libraries have freed goes back to the system, instead of waiting in the process
for the next large array.

Images and frames are made of blocks of some megabytes that live for a moment. With the defaults
of glibc and Arrow about 15 MB of them stay with the process
(docs/decisions/24-pages-under-load.md). DuckDB has an allocator of its own
(store/database_file.py).
"""

from __future__ import annotations

import contextlib
import ctypes
import os

_MMAP_THRESHOLD, _ARENA_MAX = -3, -8  # M_… of glibc's malloc.h
LARGE_BYTES = (
    128 * 1024
)  # glibc's default, which else rises to the largest block that was freed, up to 32 MB


def give_back() -> None:
    """From now on.

    Before other threads begin, as glibc leaves them the heaps that they have, and before Arrow is
    loaded, which reads its variable then. Without glibc only Arrow's blocks go back.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    with contextlib.suppress(AttributeError, OSError, TypeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_MMAP_THRESHOLD, LARGE_BYTES)
        libc.mallopt(_ARENA_MAX, 1)  # threads that take turns need no heap each
