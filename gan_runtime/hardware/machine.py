"""This machine, inspected without TensorFlow: its processor, its accelerators, the devices that JAX
reaches, the precision that a preset starts with, and the facts that a run records.

python -m gan_runtime.hardware.machine gpu      prints {"count": 1, "name": "NVIDIA H100"}; fails
where JAX has no such device
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psutil
from pydantic import BaseModel, ConfigDict, ValidationError

from gan_runtime.base import framework_settings, processor
from gan_runtime.catalog.entries import Caution
from gan_runtime.records import processes
from gan_runtime.spec import RunSpec
from gan_runtime.spec.presets import preset

TPU_DEVICES = (Path("/dev/accel0"), Path("/dev/vfio/0"))
LIBRARIES = (
    "tensorflow",
    "keras",
    "jax",
    "jaxlib",
    "numpy",
    "ml_dtypes",
    "safetensors",
    "psutil",
    "pydantic",
)
# With one of these flags, oneDNN computes bfloat16 in vectors.
BFLOAT16_FLAGS = ("avx512f", "avx_ne_convert", "bf16")
FLOAT32 = {"precision": "float32"}
PRESET_IN_FLOAT32 = (
    "This host's processor has no bfloat16 arithmetic. So precision is float32, and training takes"
    " longer than elsewhere."
)
# Measured in docs/decisions/05-xla.md
SLOW_BFLOAT16 = (
    "This host's processor has no bfloat16 arithmetic. Without XLA, a step of the DCGAN takes"
    " about 8 times as long as in float32: use precision=float32."
)
JAX_SECONDS = 60.0
JAX_PLATFORMS = {"gpu": "cuda", "tpu": "tpu"}
JAX_PLUGINS = {"gpu": ("jax_cuda12_plugin", "jax_cuda13_plugin"), "tpu": ("libtpu",)}


def has_bfloat16() -> bool:
    """Whether TensorFlow multiplies bfloat16 in vector instructions; without them it emulates."""
    return not set(BFLOAT16_FLAGS).isdisjoint(processor.flags())


def has_gpu() -> bool:
    """Whether a GPU driver is installed, even if no framework can use the GPU."""
    return shutil.which("nvidia-smi") is not None


def has_tpu() -> bool:
    """Whether a TPU's device file exists, even if no framework can use the TPU."""
    return any(path.exists() for path in TPU_DEVICES)


def is_slow_in_bfloat16() -> bool:
    """Whether a run trains on a processor that emulates bfloat16. Loads no framework."""
    return not (has_gpu() or has_tpu() or has_bfloat16())


def preset_values(name: str) -> dict[str, Any]:
    """The options of a preset on this host; a preset that names a precision is unchanged.

    Raises:
        SpecError: there is no preset of that name.
    """
    values = preset(name).values
    return {**values, **FLOAT32} if is_preset_changed(name) else values


def is_preset_changed(name: str) -> bool:
    """Whether the preset starts in float32 here and in another precision elsewhere."""
    return "precision" not in preset(name).values and is_slow_in_bfloat16()


def preset_cautions(name: str, specs: Iterable[RunSpec]) -> list[Caution]:
    """The known problems of the preset with any of these options on this host, and their repair."""
    cautions = preset(name).cautions
    usual = RunSpec.parse(preset_values(name)).flat()
    concerning = [
        next((caution for caution in cautions if caution.concerns(values, usual)), None)
        for values in (spec.flat() for spec in specs)
    ]
    return [caution for caution in cautions if caution in concerning]


def precision_warning(spec: RunSpec) -> str:
    """Why these options are far slower here than float32; empty where they are not."""
    is_emulated = spec.precision == "mixed_bfloat16" and spec.xla == "off" and spec.engine != "jax"
    is_on_cpu = spec.accelerator in ("auto", "cpu")
    return SLOW_BFLOAT16 if is_emulated and is_on_cpu and is_slow_in_bfloat16() else ""


class JaxDevices(BaseModel):
    """`count` devices of the model `name`."""

    model_config = ConfigDict(frozen=True)
    count: int
    name: str


def has_jax() -> bool:
    """Whether JAX is installed. Checks for jaxlib, since `jax` may be blocked in this process."""
    return importlib.util.find_spec("jaxlib") is not None


def jax_devices(accelerator: str) -> JaxDevices | None:
    """The devices of `accelerator` (gpu or tpu) that JAX sees, from a child process, as JAX shares
    none with TensorFlow; None without a device or without JAX's plugin.

    Takes some seconds.
    """
    if not has_jax() or not any(map(importlib.util.find_spec, JAX_PLUGINS[accelerator])):
        return None
    command = processes.command("gan_runtime.hardware.machine", accelerator)
    try:
        child = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=JAX_SECONDS,
            env=processes.environment(framework_settings.clean_environment(os.environ)),
            check=False,
        )
        return JaxDevices.model_validate_json(child.stdout.strip().splitlines()[-1])
    except subprocess.TimeoutExpired:
        return None
    except (IndexError, ValidationError):
        print(child.stderr, file=sys.stderr)  # `hosts.explained` finds there why a TPU fails
        return None


def detect_jax_devices(accelerator: str) -> JaxDevices:
    """Loads JAX in this process. Raises RuntimeError when JAX cannot start."""
    os.environ["JAX_PLATFORMS"] = JAX_PLATFORMS[accelerator]
    import jax

    devices = jax.devices()
    return JaxDevices(count=len(devices), name=devices[0].device_kind)


def facts() -> dict[str, object]:
    """Machine, versions of the loaded libraries, and commit, for the record of a run. Loads no
    framework.
    """
    changes = _git("status", "--porcelain", "--untracked-files=no")
    return {
        "cpu_model": processor.model(),
        "cpu_flags": processor.flags(),
        "cores": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "platform": platform.platform(),
        "python": platform.python_version(),
        "hostname": platform.node(),
        "versions": {
            name: str(sys.modules[name].__version__) for name in LIBRARIES if name in sys.modules
        },
        "commit": _git("rev-parse", "--short", "HEAD") or "",
        # None outside a repository. With changes, the commit does not identify the code.
        "uncommitted_changes": None if changes is None else bool(changes),
    }


def _git(*arguments: str) -> str | None:
    command = ["git", "--no-optional-locks", "-C", str(Path(__file__).parent), *arguments]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None


if __name__ == "__main__":
    print(detect_jax_devices(sys.argv[1]).model_dump_json())
