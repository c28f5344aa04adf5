"""The environment of trainers and jobs: what a person set for other work does not change the
numbers of a run.

Keras, JAX and TensorFlow read variables and keras.json when they load: a backend, a default
precision, flags of a compiler. A run's record would say "float32, seed 1" of something else. So
trainers and jobs start without them, but for PASSED and what GAN_RUNTIME_PASS names; and what is
left is recorded with the run (`recorded`).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

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
TERRAFORM = ("TF_CLI_", "TF_VAR_", "TF_LOG")  # begin as TensorFlow's do
PASS_VARIABLE = "GAN_RUNTIME_PASS"  # further names, such as XLA_FLAGS,LIBTPU_INIT_ARGS

# Where things are, and what is printed: they change no number, and may name hosts and folders of a
# person.
NOT_RECORDED = (
    *("KERAS_HOME", "TF_CONFIG", "JAX_COORDINATOR_ADDRESS", "JAX_COMPILATION_CACHE_DIR"),
    *("TF_CPP_MIN_LOG_LEVEL", "TF_CPP_MAX_VLOG_LEVEL"),
)
# Threads and memory of this host.
HOST = (
    *(
        "TF_NUM_INTRAOP_THREADS",
        "TF_NUM_INTEROP_THREADS",
        "TF_GPU_THREAD_MODE",
        "TF_GPU_THREAD_COUNT",
    ),
    *("TF_FORCE_GPU_ALLOW_GROWTH", "TF_GPU_ALLOCATOR", "XLA_PYTHON_CLIENT_PREALLOCATE"),
    *("XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_ALLOCATOR"),
)
PASSED = (*NOT_RECORDED, *HOST)


def pinned(environment: Mapping[str, str]) -> dict[str, str]:
    """`environment` for a trainer or a job: without settings of frameworks, and with loopback
    exempt from its proxies.
    """
    blocked = set(left_out(environment))
    kept = {name: value for name, value in environment.items() if name not in blocked}
    cluster.exempt_from_proxies(kept, cluster.LOOPBACK_NAMES)
    return kept


def left_out(environment: Mapping[str, str]) -> list[str]:
    """Names of the settings that `pinned` leaves out, sorted."""
    passed = {*PASSED, *(name.strip() for name in environment.get(PASS_VARIABLE, "").split(","))}
    return sorted(name for name in environment if _is_of_a_framework(name) and name not in passed)


def recorded(environment: Mapping[str, str]) -> dict[str, str]:
    """What frameworks find in this process, by name: settings let through, and those that the
    run itself asks for.
    """
    return {
        name: environment[name]
        for name in sorted(environment)
        if _is_of_a_framework(name) and name not in NOT_RECORDED
    }


def _is_of_a_framework(name: str) -> bool:
    return name.startswith(FRAMEWORKS) and not name.startswith(TERRAFORM)


def pin(scratch: Path) -> None:
    """In a trainer that is about to load frameworks: leaves out of its own environment what
    `pinned` does, also where a cluster has started it. `scratch`: see `use_private_keras_home`.
    """
    blocked = left_out(os.environ)
    if blocked:
        print(
            f"Ignored, so that the run is what its record says: {', '.join(blocked)}. "
            f"{PASS_VARIABLE}={blocked[0]} lets a setting through and records it.",
            flush=True,
        )
    environment = pinned(os.environ)
    os.environ.clear()
    os.environ.update(environment)
    use_private_keras_home(scratch)


def use_private_keras_home(scratch: Path) -> None:
    """Keras finds no keras.json in this process, and the data sets that it has downloaded as
    before. Before Keras is imported.

    `scratch`: a folder of this process alone, which lives as long as it does.
    """
    from gan_runtime.data import (
        mnist,
    )  # not before: the dashboard and most jobs need no NumPy for it

    home = scratch / "keras"
    home.mkdir()
    with contextlib.suppress(OSError, RuntimeError):  # no cache can be there, and so no data set
        cache = mnist.keras_cache()
        cache.mkdir(parents=True, exist_ok=True)
        (home / "datasets").symlink_to(cache.resolve())
    os.environ["KERAS_HOME"] = str(home)
