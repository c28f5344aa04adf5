"""What this host offers to train on, found out in a child process, so that the dashboard never
loads a framework.

python -m gan_runtime.hardware.hosts        prints the answer as JSON
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
from pydantic import BaseModel, ConfigDict, ValidationError

from gan_runtime.base import processor
from gan_runtime.base.blocked_imports import keep_scikit_learn_out
from gan_runtime.base.errors import AcceleratorError
from gan_runtime.base.tpu_advice import advice
from gan_runtime.engines.tf import process as tf_process
from gan_runtime.hardware import framework_settings, jax_devices
from gan_runtime.spec import RunSpec
from gan_runtime.spec.rules import (
    NO_KERAS_LOOP_ON_A_TPU,
    no_tpu_workers,
    one_replica_per_cpu_worker,
)

PROBE_SECONDS = 120.0
TPU_DEVICES = (Path("/dev/accel0"), Path("/dev/vfio/0"))
NO_CORE = (
    "libtpu is installed but shows no TPU core: another process may hold it, or its version does"
    " not suit (docs/tpu.md)."
)
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
ACCELERATORS = ("tpu", "gpu", "cpu")  # in the order in which `auto` prefers them


class Device(BaseModel):
    """One kind of accelerator.

    `count`: devices for replicas (CPU: logical cores); `reason`: why not, and what to do.

    `engines`: those that reach it, TensorFlow's first. `is_coreless`: its library is there and
    shows no core.
    """

    model_config = ConfigDict(frozen=True)
    available: bool
    count: int
    name: str
    reason: str = ""
    engines: tuple[str, ...] = ("tensorflow",)
    is_coreless: bool = False


class Host(BaseModel):
    """This machine: processor, memory in bytes, library versions, and each kind of
    accelerator by name.
    """

    model_config = ConfigDict(frozen=True)
    cpu_model: str
    cores: int
    memory_bytes: int
    python: str
    tensorflow: str
    devices: dict[str, Device]

    def resolve(self, spec: RunSpec) -> str:
        """The accelerator that `spec` will train on: cpu, gpu or tpu.

        Raises:
            AcceleratorError: the host has none of that kind, or too few devices for the replicas.
        """
        if spec.accelerator == "tpu" and spec.tpu_address != "local":
            return "tpu"  # somewhere else: only the trainer can tell
        wanted: str = spec.accelerator
        if wanted == "auto":
            wanted = next(
                (name for name in ACCELERATORS if self._reached(name, spec.engine)), "cpu"
            )
        device = self.devices[wanted]
        if not device.available:
            usable = ", ".join(name for name in ACCELERATORS if self.devices[name].available)
            raise AcceleratorError(
                f"{RunSpec.named('accelerator')} is {wanted}, but"
                f" {device.reason.removesuffix('.')}; on this host you can use {usable}."
            )
        if not self._reached(wanted, spec.engine):
            other = ", or accelerator=cpu" if wanted != "cpu" else ""
            raise AcceleratorError(
                f"{RunSpec.named('engine')} is {spec.engine}, but on this host the {wanted.upper()}"
                f" is reached by {', '.join(device.engines)} only: use"
                f" engine={device.engines[0]}{other}."
            )
        if (
            wanted == "tpu" and spec.workers > 1
        ):  # of one host; a larger TPU is a cluster, whose workers nobody starts from here
            raise AcceleratorError(no_tpu_workers(spec.workers))
        if wanted == "tpu" and spec.loop == "keras":
            raise AcceleratorError(NO_KERAS_LOOP_ON_A_TPU)
        if wanted == "cpu" and spec.engine != "jax" and spec.workers > 1 and spec.replicas > 1:
            raise AcceleratorError(one_replica_per_cpu_worker(spec.replicas, spec.workers))
        if wanted == "gpu" and spec.workers > 1 and spec.replicas_in_all > device.count:
            raise AcceleratorError(
                f"{spec.workers} workers of {spec.replicas} replica(s) need {spec.replicas_in_all}"
                f" GPUs, but this host has {device.count}: use fewer workers, accelerator=cpu, or"
                " start the workers on a cluster (docs/cluster.md)."
            )
        if wanted != "cpu" and spec.replicas > device.count:
            raise AcceleratorError(
                f"{RunSpec.named('replicas')} is {spec.replicas}, but this host has {device.count}"
                f" {wanted.upper()} device(s): use 1 to {device.count}, or accelerator=cpu for"
                " simulated cores."
            )
        return wanted

    def engine(self, spec: RunSpec) -> str:
        """The engine that `spec` will train with: TensorFlow for `auto`, unless only JAX reaches
        the accelerator.

        Raises as `resolve`.
        """
        if spec.engine != "auto":
            return spec.engine
        elsewhere = spec.accelerator == "tpu" and spec.tpu_address != "local"
        return "tensorflow" if elsewhere else self.devices[self.resolve(spec)].engines[0]

    def _reached(self, accelerator: str, engine: str) -> bool:
        device = self.devices[accelerator]
        return device.available and engine in ("auto", *device.engines)


def probe() -> Host:
    """Asks a child process, which takes a few seconds.

    Raises:
        AcceleratorError: TensorFlow cannot be loaded at all; the message carries its last line.
    """
    environment = {**framework_settings.pinned(os.environ), "TF_CPP_MIN_LOG_LEVEL": "3"}
    try:
        child = subprocess.run(
            [sys.executable, "-m", "gan_runtime.hardware.hosts"],
            capture_output=True,
            text=True,
            timeout=PROBE_SECONDS,
            env=environment,
            check=False,
        )
        return explained(
            Host.model_validate_json(child.stdout.strip().splitlines()[-1]), child.stderr
        )
    except subprocess.TimeoutExpired:
        raise AcceleratorError(
            f"TensorFlow did not start within {PROBE_SECONDS:.0f} s: another process may hold the"
            " accelerator."
        ) from None
    except (IndexError, ValidationError):
        last = (child.stderr.strip().splitlines() or ["no message"])[-1]
        raise AcceleratorError(
            f"TensorFlow cannot be loaded ({last[:200]}): run `make setup` again."
        ) from None


def explained(host: Host, said: str) -> Host:
    """The host with a better reason for a TPU that is there and cannot be used, where what
    libtpu `said` tells one.
    """
    tpu = host.devices["tpu"]
    why = advice(said) if tpu.is_coreless else ""
    return (
        host.model_copy(
            update={
                "devices": {**host.devices, "tpu": tpu.model_copy(update={"reason": f"{why}."})}
            }
        )
        if why
        else host
    )


def look() -> Host:
    """The answer itself, found in this process.

    Loads TensorFlow, where there is one: only for child processes.
    """
    tf = _tensorflow()
    return Host(
        cpu_model=processor.model(),
        cores=psutil.cpu_count(logical=False) or os.cpu_count() or 1,
        memory_bytes=psutil.virtual_memory().total,
        python=platform.python_version(),
        tensorflow=tf.__version__ if tf else "",
        devices={
            "cpu": Device(
                available=True,
                count=os.cpu_count() or 1,
                name=processor.model(),
                engines=_engines_for_cpus(tf),
            ),
            "gpu": _also_by_jax("gpu", _gpu(tf), is_there=has_gpu()),
            "tpu": _also_by_jax("tpu", _tpu(tf), is_there=has_tpu()),
        },
    )


def has_gpu() -> bool:
    """Whether there is one by all signs, without asking a framework: it may still be one that
    nothing here can use.
    """
    return shutil.which("nvidia-smi") is not None


def has_tpu() -> bool:
    """As `has_gpu`."""
    return any(path.exists() for path in TPU_DEVICES)


def _tensorflow() -> Any | None:
    """None where it is not installed and JAX is, as on hosts that it is no longer built for."""
    tf_process.keep_jax_out()
    try:
        import tensorflow as tf
    except ImportError:
        if jax_devices.is_installed():
            return None
        raise
    return tf


def _engines_for_cpus(tf: Any | None) -> tuple[str, ...]:
    return (*(("tensorflow",) if tf else ()), *(("jax",) if jax_devices.is_installed() else ()))


def _also_by_jax(kind: str, device: Device, is_there: bool) -> Device:
    """What JAX adds to what TensorFlow reaches.

    A TPU that TensorFlow holds cannot be asked again.
    """
    found = jax_devices.ask(kind) if is_there and not (kind == "tpu" and device.available) else None
    if found is None:
        return device
    if device.available:
        return device.model_copy(update={"engines": ("tensorflow", "jax")})
    return Device(available=True, count=found.count, name=found.name, engines=("jax",))


def _gpu(tf: Any | None) -> Device:
    gpus = tf.config.list_physical_devices("GPU") if tf else []
    if tf and gpus:
        details = tf.config.experimental.get_device_details(gpus[0])
        return Device(available=True, count=len(gpus), name=str(details.get("device_name", "GPU")))
    if has_gpu():
        reason = (
            "this TensorFlow cannot use the NVIDIA GPU of this host: run `make setup` again to"
            " install the GPU build."
        )
    else:
        reason = "this host has no NVIDIA GPU (nvidia-smi is not found)."
    return Device(available=False, count=0, name="", reason=reason)


def _tpu(tf: Any | None) -> Device:
    if not has_tpu():
        return Device(
            available=False,
            count=0,
            name="",
            reason="this host has no TPU (neither /dev/accel0 nor /dev/vfio/0 exists).",
        )
    if importlib.util.find_spec("libtpu") is None:
        reason = (
            "TensorFlow here has no TPU support (libtpu is not installed): run `make setup` on the"
            " TPU host."
        )
        return Device(available=False, count=0, name="", reason=reason)
    cores = len(tf.config.list_logical_devices("TPU")) if tf else 0
    if cores == 0:
        return Device(available=False, count=0, name="", reason=NO_CORE, is_coreless=True)
    return Device(available=True, count=cores, name="TPU")


def facts() -> dict[str, object]:
    """Machine, versions of what is imported by now, and commit, for the record of a run;
    loads no framework.
    """
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
        "uncommitted_changes": _has_uncommitted_changes(),
    }


def _has_uncommitted_changes() -> bool | None:
    """Whether files of the project differ from the commit, so that it does not tell what ran;
    None outside a repository.
    """
    changes = _git("status", "--porcelain", "--untracked-files=no")
    return None if changes is None else bool(changes)


def _git(*arguments: str) -> str | None:
    command = ["git", "--no-optional-locks", "-C", str(Path(__file__).parent), *arguments]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None


if __name__ == "__main__":
    keep_scikit_learn_out()
    print(look().model_dump_json())
