"""A process with JAX on eight simulated cores that runs functions for tests. TensorFlow and JAX
never share a process.

Requests are (function of a module `jax_…` of this folder, or "package.module:function", and
arguments), responses (is_well, result or traceback), both pickled. The catalog of the process
includes the workload of docs/adding-a-workload.md.
"""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

from tests.support.engines import program_cache

CORES = 8


class JaxProcess:
    """`jax("function", …)` calls a function of these modules there and returns its result."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __call__(self, function: str, *arguments: Any) -> Any:
        """Raises AssertionError with the traceback of the process."""
        if self._process is None:
            command = [sys.executable, "-m", "tests.support.engines.jax_process"]
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=_environment(program_cache.folder()),
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        pickle.dump((function, arguments), self._process.stdin)
        self._process.stdin.flush()
        is_well, answer = pickle.load(self._process.stdout)
        assert is_well, answer
        return answer

    def close(self) -> None:
        """Ends the process if it was started."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()


def _environment(compiled: Path) -> dict[str, str]:
    """The environment of the process.

    `compiled`: a folder that caches compiled XLA programs, because many tests build the same
    engine. LLVM does not optimize: small networks take longer to compile than to run.
    tests/full/training/test_jax_runs.py tests runs as they are compiled for users.
    """
    core_flags = (
        f"--xla_force_host_platform_device_count={CORES} --xla_backend_optimization_level=0"
    )
    flags = f"{os.environ.get('XLA_FLAGS', '')} {core_flags}".strip()
    keep = {
        "JAX_COMPILATION_CACHE_DIR": str(compiled),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": program_cache.LEAST_SECONDS,
    }
    return {
        **os.environ,
        **keep,
        "KERAS_BACKEND": "jax",
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": flags,
    }


def _serve() -> None:
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # output of libraries is no response
    from tests.support import guide
    from tests.support.engines import (
        jax_golden,
        jax_parts,
        jax_showers,
        jax_side,
        jax_three_ways,
        jax_tiles,
    )

    guide.take_in()
    modules = (jax_side, jax_golden, jax_parts, jax_showers, jax_three_ways, jax_tiles)
    functions = {name: value for module in modules for name, value in vars(module).items()}
    while True:
        function, arguments = pickle.load(sys.stdin.buffer)
        try:
            module, _, name = function.rpartition(":")
            called = getattr(importlib.import_module(module), name) if module else functions[name]
            answer = (True, called(*arguments))
        except Exception:
            answer = (False, traceback.format_exc())
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    _serve()
