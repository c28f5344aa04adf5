"""The rights of a plain user, also where tests run as root, who may read whatever a folder's
permissions say.
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
    """Within it nobody may read or search the files and folders; nor may threads that begin
    within it.
    """
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
    """This thread of root without the right to read everything, which it can take back."""
    libc = ctypes.CDLL(None, use_errno=True)
    before, after = (ctypes.c_uint32 * 6)(), (ctypes.c_uint32 * 6)()
    assert libc.capget(_HEADER, before) == 0, os.strerror(ctypes.get_errno())
    after[:] = before[:]
    after[0] &= ~_READ_EVERYTHING  # of the effective ones
    assert libc.capset(_HEADER, after) == 0, os.strerror(ctypes.get_errno())
    try:
        yield
    finally:
        assert libc.capset(_HEADER, before) == 0, os.strerror(ctypes.get_errno())
