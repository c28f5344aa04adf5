"""The environment of trainers and jobs, free of settings that would change the numbers of a run.

Keras, JAX and TensorFlow read variables and keras.json when they load: a backend, a default
precision, flags of a compiler. With those, "float32, seed 1" in a run's record would describe
another computation. So trainers and jobs start without them, except for PASSED and the names in
GAN_RUNTIME_PASS; `recorded` lists the others in the run's record.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from gan_runtime.base import cluster

FRAMEWORKS = (
    "KERAS_",
    "JAX_",
    "XLA_",
    "TF_",
    "TF2_",
    "CUBLAS_",
    "CUDNN_",
    "NVIDIA_TF32_",
    "ONEDNN_",
    "DNNL_",
    "LIBTPU_",
)
TERRAFORM = ("TF_CLI_", "TF_VAR_", "TF_LOG")  # share TensorFlow's prefix
NOTIFY_VARIABLE = "GAN_RUNTIME_NOTIFY_"  # begins the settings of notices (channels.py)
PASS_VARIABLE = "GAN_RUNTIME_PASS"  # further names, such as XLA_FLAGS,LIBTPU_INIT_ARGS

# Paths, caches and log levels change no number, and can contain names of hosts and folders.
NOT_RECORDED = (
    *("KERAS_HOME", "TF_CONFIG", "JAX_COORDINATOR_ADDRESS", "JAX_COMPILATION_CACHE_DIR"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS",
    *("TF_CPP_MIN_LOG_LEVEL", "TF_CPP_MAX_VLOG_LEVEL"),
)
# Threads and memory of this host.
HOST = (
    *("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"),
    *("TF_GPU_THREAD_MODE", "TF_GPU_THREAD_COUNT"),
    *("TF_FORCE_GPU_ALLOW_GROWTH", "TF_GPU_ALLOCATOR", "XLA_PYTHON_CLIENT_PREALLOCATE"),
    *("XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_ALLOCATOR"),
)
PASSED = (*NOT_RECORDED, *HOST)


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """`environment` for a trainer or a job: without settings of frameworks and secrets of notices,
    and with loopback exempt from its proxies.
    """
    blocked = set(ignored(environment))
    clean = {
        name: value
        for name, value in environment.items()
        if name not in blocked and not name.startswith(NOTIFY_VARIABLE)
    }
    cluster.exempt_from_proxies(clean, cluster.LOOPBACK_NAMES)
    return clean


def ignored(environment: Mapping[str, str]) -> list[str]:
    """Names of the settings that `clean_environment` removes, sorted."""
    passed = {*PASSED, *(name.strip() for name in environment.get(PASS_VARIABLE, "").split(","))}
    return sorted(
        name for name in environment if _belongs_to_a_framework(name) and name not in passed
    )


def recorded(environment: Mapping[str, str]) -> dict[str, str]:
    """The settings of frameworks in this process, by name, for the run's record."""
    return {
        name: environment[name]
        for name in sorted(environment)
        if _belongs_to_a_framework(name) and name not in NOT_RECORDED
    }


def _belongs_to_a_framework(name: str) -> bool:
    return name.startswith(FRAMEWORKS) and not name.startswith(TERRAFORM)


def clean_this_process() -> None:
    """Applies `clean_environment` to this process before it loads frameworks, for trainers that a
    cluster has started.
    """
    blocked = ignored(os.environ)
    if blocked:
        print(
            f"Ignored, so that the run matches its record: {', '.join(blocked)}. "
            f"{PASS_VARIABLE}={blocked[0]} passes a setting and records it.",
            flush=True,
        )
    environment = clean_environment(os.environ)
    os.environ.clear()
    os.environ.update(environment)


def use_private_keras_home(scratch: Path) -> None:
    """Hides keras.json from this process, and links the data sets that Keras has downloaded.

    Call it before Keras is imported. `scratch`: a folder of this process alone, which lives as
    long as the process.
    """
    home = scratch / "keras"
    home.mkdir()
    # Without a possible cache there is no data set.
    with contextlib.suppress(OSError, RuntimeError):
        cache = keras_cache()
        cache.mkdir(parents=True, exist_ok=True)
        (home / "datasets").symlink_to(cache.resolve())
    os.environ["KERAS_HOME"] = str(home)


def keras_cache() -> Path:
    """The folder of Keras' downloads. Raises RuntimeError for a user without a home folder."""
    return (Path(os.environ.get("KERAS_HOME") or Path.home() / ".keras") / "datasets").resolve()


class _BlockedImports:
    """The first finder that Python asks for a module. `None` in sys.modules would block an import
    too, but SciPy mistakes it for the module.
    """

    names: ClassVar[set[str]] = set()

    @classmethod
    def find_spec(cls, name: str, *_: object) -> None:
        if name in cls.names:
            raise ImportError(f"{name} is blocked in this process")


def block_imports(*names: str) -> None:
    """Makes later imports of these modules fail in this process, as if they were not installed."""
    _BlockedImports.names.update(names)
    if _BlockedImports not in sys.meta_path:
        sys.meta_path.insert(0, _BlockedImports)


def block_scikit_learn() -> None:
    """Keras imports it for wrappers that are not used here; without it a trainer loads in four
    fifths of the time.
    """
    block_imports("sklearn")
