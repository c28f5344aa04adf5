"""Returns memory that libraries have freed to the system, instead of keeping it for the next
large array.

Images and frames are short-lived blocks of some megabytes. With the defaults of glibc and Arrow,
about 15 MB of them stay with the process (docs/decisions/24-pages-under-load.md). DuckDB has its
own allocator (store/database_file.py).
"""

from __future__ import annotations

import contextlib
import ctypes
import os

_MMAP_THRESHOLD, _ARENA_MAX = -3, -8  # M_… of glibc's malloc.h
LARGE_BYTES = 128 * 1024  # glibc's default, fixed: otherwise it grows with freed blocks, to 32 MB


def give_back() -> None:
    """Takes effect from now on.

    Call it before other threads start, as their heaps stay, and before Arrow is imported, which
    reads its variable then. Without glibc, only Arrow's blocks are returned.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    with contextlib.suppress(AttributeError, OSError, TypeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_MMAP_THRESHOLD, LARGE_BYTES)
        libc.mallopt(_ARENA_MAX, 1)  # threads that take turns need no separate heaps
