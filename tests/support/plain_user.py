"""The permissions of a regular user, also when tests run as root, which ignores the permissions of
folders.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

_HEADER = (ctypes.c_uint32 * 2)(0x20080522, 0)  # version 3 of the kernel's interface, this thread
_READ_EVERYTHING = 1 << 1 | 1 << 2  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH


@contextmanager
def without_rights(*paths: Path) -> Iterator[None]:
    """In this context files and folders cannot be read or searched, not even by new threads."""
    modes = {path: path.stat().st_mode for path in paths}
    for path in paths:
        path.chmod(0)
    try:
        with _plain() if os.geteuid() == 0 else nullcontext():
            yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


@contextmanager
def _plain() -> Iterator[None]:
    """Takes the right to read everything from this thread of root, and gives it back at the end."""
    libc = ctypes.CDLL(None, use_errno=True)
    before, after = (ctypes.c_uint32 * 6)(), (ctypes.c_uint32 * 6)()
    assert libc.capget(_HEADER, before) == 0, os.strerror(ctypes.get_errno())
    after[:] = before[:]
    after[0] &= ~_READ_EVERYTHING  # effective capabilities
    assert libc.capset(_HEADER, after) == 0, os.strerror(ctypes.get_errno())
    try:
        yield
    finally:
        assert libc.capset(_HEADER, before) == 0, os.strerror(ctypes.get_errno())
