"""The cache of JAX programs that tests compile, for later sessions and for all workers of a
session.

JAX looks up a program by its whole text and its compiler options, so a changed engine is compiled
again. The folder name includes the processor and the versions: a program of another processor may
use instructions that this one lacks.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path

from gan_runtime.base import processor

LEAST_SECONDS = "0.05"  # faster compilations are not cached: reading would take as long
MOST_BYTES = 500_000_000  # about ten times what all tests compile
PACKAGES = ("jax", "jaxlib", "keras")


def folder() -> Path:
    """The folder for this processor and these versions. It is emptied if it has grown too large,
    and belongs to this session alone if the user's cache cannot be written.
    """
    every = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gan-training-tests"
    cache = every / f"jax-{_digest()}"
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.mkdtemp(prefix="jax-programs-"))
    if sum(file.stat().st_size for file in cache.iterdir()) > MOST_BYTES:
        shutil.rmtree(cache, ignore_errors=True)
    return cache


def _digest() -> str:
    facts = (processor.model(), *processor.flags(), *(version(package) for package in PACKAGES))
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]
