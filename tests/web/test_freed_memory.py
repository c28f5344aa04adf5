"""Memory that the dashboard's libraries free returns to the system."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

# Freeing a block of 30 MB raises glibc's threshold. A block of 20 MB is then in the heap, before a
# small one, and stays there when freed.
FREED_MB = """
import sys
import psutil
if sys.argv[1] == "yes":
    from dashboard.frame import freed_memory
    freed_memory.give_back()
import ctypes
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
def block(size):
    place = libc.malloc(ctypes.c_size_t(size))
    ctypes.memset(place, 1, size)
    return place
libc.free(block(30_000_000))
begun = psutil.Process().memory_info().rss
large, small = block(20_000_000), block(100_000)
libc.free(large)
print((psutil.Process().memory_info().rss - begun) / 1e6)
"""
POOL = """
from dashboard.frame import freed_memory
freed_memory.give_back()
import pyarrow
print(pyarrow.default_memory_pool().backend_name)
"""


def output_of(program: str, *words: str) -> str:
    """The output of a new process."""
    return subprocess.run(
        [sys.executable, "-c", program, *words],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout.strip()


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="other allocators have no such threshold"
)
def test_freed_large_block_returns_to_the_system() -> None:
    assert float(output_of(FREED_MB, "no")) > 15
    assert float(output_of(FREED_MB, "yes")) < 5


def test_arrow_uses_the_system_allocator_unless_another_is_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ARROW_DEFAULT_MEMORY_POOL", raising=False)
    assert output_of(POOL) == "system"
    monkeypatch.setenv("ARROW_DEFAULT_MEMORY_POOL", "mimalloc")
    assert output_of(POOL) == "mimalloc"
