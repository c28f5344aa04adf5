"""What this host offers to train on. Files tell whether there is a GPU or TPU; if so, a child
process loads TensorFlow and asks it, so that the dashboard never loads a framework.

python -m gan_runtime.hardware.hosts        prints TensorFlow's answer as JSON
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import re
import subprocess
import sys
import sysconfig
import threading
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any

import psutil
from pydantic import BaseModel, ConfigDict, ValidationError

from gan_runtime.base import framework_settings, processor
from gan_runtime.base.errors import AcceleratorError, advice
from gan_runtime.base.framework_settings import block_scikit_learn
from gan_runtime.engines.tf import process as tf_process
from gan_runtime.hardware import machine
from gan_runtime.records import processes
from gan_runtime.spec import RunSpec
from gan_runtime.spec.rules import (
    NO_KERAS_LOOP_ON_A_TPU,
    no_tpu_workers,
    one_replica_per_cpu_worker,
)

PROBE_SECONDS = 120.0
NO_GPU = "this host has no NVIDIA GPU (nvidia-smi is not installed)."
NO_TPU = "this host has no TPU (neither /dev/accel0 nor /dev/vfio/0 exists)."
NO_CORE = (
    "libtpu is installed but shows no TPU core. Another process may hold it, or its version does"
    " not match (docs/tpu.md)."
)
ACCELERATORS = ("tpu", "gpu", "cpu")  # in the order in which `auto` prefers them


class Device(BaseModel):
    """One kind of accelerator.

    `count`: devices for replicas, of a CPU its logical cores. `reason`: why it is not available,
    and what to do. `engines`: those that can use it, TensorFlow's first. `is_coreless`: the
    library of the TPU is installed and shows no core. `is_unknown`: no framework has answered.
    """

    model_config = ConfigDict(frozen=True)
    available: bool
    count: int
    name: str
    reason: str = ""
    engines: tuple[str, ...] = ("tensorflow",)
    is_coreless: bool = False
    is_unknown: bool = False


class Host(BaseModel):
    """This machine; `devices`: by the kind of accelerator."""

    model_config = ConfigDict(frozen=True)
    cpu_model: str
    cores: int
    memory_bytes: int
    python: str
    tensorflow: str
    devices: dict[str, Device]

    def resolve(self, spec: RunSpec) -> str:
        """The accelerator that `spec` trains on: cpu, gpu or tpu.

        Raises:
            AcceleratorError: the host has no such accelerator, or too few devices.
        """
        if spec.accelerator == "tpu" and spec.tpu_address != "local":
            return "tpu"  # the TPU is on another machine, so only the trainer can check it
        kind: str = spec.accelerator
        if kind == "auto":
            self._check_known()
            kind = next((name for name in ACCELERATORS if self._reached(name, spec.engine)), "cpu")
        device = self.devices[kind]
        if not device.available:
            usable = ", ".join(name for name in ACCELERATORS if self.devices[name].available)
            raise AcceleratorError(
                f"{RunSpec.named('accelerator')} is {kind}, but {device.reason.removesuffix('.')};"
                f" on this host use {usable}."
            )
        if not self._reached(kind, spec.engine):
            other = ", or accelerator=cpu" if kind != "cpu" else ""
            raise AcceleratorError(
                f"{RunSpec.named('engine')} is {spec.engine}, but only"
                f" {' and '.join(device.engines)} can use the {kind.upper()} of this host: use"
                f" engine={device.engines[0]}{other}."
            )
        self._check_count(spec, kind, device.count)
        return kind

    def _check_known(self) -> None:
        """Raises AcceleratorError if `auto` could miss an accelerator that did not answer."""
        for device in self.devices.values():
            if device.is_unknown:
                raise AcceleratorError(
                    f"{RunSpec.named('accelerator')} is auto, but {device.reason} Or use"
                    " accelerator=cpu."
                )

    def _check_count(self, spec: RunSpec, kind: str, count: int) -> None:
        """Raises AcceleratorError: `count` devices do not suffice for the replicas and workers."""
        # A larger TPU is a cluster, which starts its workers itself.
        if kind == "tpu" and spec.workers > 1:
            raise AcceleratorError(no_tpu_workers(spec.workers))
        if kind == "tpu" and spec.loop == "keras":
            raise AcceleratorError(NO_KERAS_LOOP_ON_A_TPU)
        if kind == "cpu" and spec.engine != "jax" and spec.workers > 1 and spec.replicas > 1:
            raise AcceleratorError(one_replica_per_cpu_worker(spec.replicas, spec.workers))
        if kind == "gpu" and spec.workers > 1 and spec.replicas_in_all > count:
            raise AcceleratorError(
                f"{spec.workers} workers of {spec.replicas} replica(s) need {spec.replicas_in_all}"
                f" GPUs, but this host has {count}: use fewer workers, accelerator=cpu, or"
                " start the workers on a cluster (docs/cluster.md)."
            )
        if kind != "cpu" and spec.replicas > count:
            raise AcceleratorError(
                f"{RunSpec.named('replicas')} is {spec.replicas}, but this host has {count}"
                f" {kind.upper()} device(s): use 1 to {count}, or accelerator=cpu for"
                " simulated cores."
            )

    def engine(self, spec: RunSpec) -> str:
        """The engine that `spec` trains with. `auto` is TensorFlow, unless only JAX can use the
        accelerator. Raises as `resolve`.
        """
        if spec.engine != "auto":
            return spec.engine
        elsewhere = spec.accelerator == "tpu" and spec.tpu_address != "local"
        return "tensorflow" if elsewhere else self.devices[self.resolve(spec)].engines[0]

    def _reached(self, accelerator: str, engine: str) -> bool:
        device = self.devices[accelerator]
        return device.available and engine in ("auto", *device.engines)


def probe() -> Host:
    """The host; takes some seconds if it has a GPU or TPU, otherwise milliseconds.

    Raises:
        AcceleratorError: TensorFlow cannot be loaded; the message ends with its last line. On a
            host with a CPU only, the trainer reports that.
    """
    return asked_host() if machine.has_gpu() or machine.has_tpu() else unasked_host()


def asked_host() -> Host:
    """The host, from a child process that loads TensorFlow; takes some seconds. If it does not
    start in time, only what needs no framework is known.

    Raises as `probe`.
    """
    clean = framework_settings.clean_environment(os.environ)
    environment = processes.environment({**clean, "TF_CPP_MIN_LOG_LEVEL": "3"})
    try:
        child = subprocess.run(
            processes.command("gan_runtime.hardware.hosts"),
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
        return unasked_host()
    except (IndexError, ValidationError):
        raise AcceleratorError(not_loaded("TensorFlow", child.stderr)) from None


def not_loaded(framework: str, trace: str) -> str:
    """Why a process with this traceback has not loaded the framework, and what to do."""
    last = (trace.strip().splitlines() or ["no message"])[-1]
    repair = rename_advice(trace) or "run `make setup` again"
    return f"{framework} cannot be loaded ({last[:200]}): {repair}."


def rename_advice(trace: str) -> str:
    """What to do about the first file of a traceback with the name of a module of Python, which is
    imported instead of it; "" without one.
    """
    shadow = shadowing_file(trace)
    return f"{shadow} replaces the module of Python with that name: rename it" if shadow else ""


def shadowing_file(trace: str) -> str:
    """The first file of a traceback with the name of a module of Python; "" without one."""
    standard = Path(sysconfig.get_path("stdlib"))
    for path in map(Path, re.findall(r'File "([^"]+\.py)", line', trace)):
        module = path.parent if path.name == "__init__.py" else path
        is_in_package = (module.parent / "__init__.py").exists()
        if module.stem in sys.stdlib_module_names and not (
            is_in_package or path.is_relative_to(standard)
        ):
            return str(path)
    return ""


def explained(host: Host, stderr: str) -> Host:
    """The host; a TPU that shows no core gets the reason that libtpu printed, where it did."""
    tpu = host.devices["tpu"]
    reason = advice(stderr) if tpu.is_coreless else ""
    if not reason:
        return host
    explained_tpu = tpu.model_copy(update={"reason": f"{reason}."})
    return host.model_copy(update={"devices": {**host.devices, "tpu": explained_tpu}})


def detect() -> Host:
    """Loads TensorFlow, where it is installed, in this process: for child processes only."""
    tf = _tensorflow()
    accelerators = {
        "gpu": _with_jax("gpu", _gpu(tf), machine.has_gpu()),
        "tpu": _with_jax("tpu", _tpu(tf), machine.has_tpu()),
    }
    return _host(tf.__version__ if tf else "", accelerators)


def unasked_host() -> Host:
    """The host as its files tell it, without a framework: its CPU can train. A GPU or TPU can be
    held by another process.
    """
    try:
        version = importlib.metadata.version("tensorflow")
    except importlib.metadata.PackageNotFoundError:
        version = ""
    accelerators = {
        "gpu": _not_answering("GPU") if machine.has_gpu() else _unavailable(NO_GPU),
        "tpu": _not_answering("TPU") if machine.has_tpu() else _unavailable(NO_TPU),
    }
    return _host(version, accelerators)


def _not_answering(name: str) -> Device:
    reason = (
        f"TensorFlow did not start within {PROBE_SECONDS:.0f} s: this machine is busy, or another"
        f" process holds the {name}. End that process, or try again later."
    )
    return _unavailable(reason).model_copy(update={"is_unknown": True})


def _host(tensorflow: str, accelerators: dict[str, Device]) -> Host:
    """`tensorflow`: its version; "" if only JAX is installed."""
    engines = (*(("tensorflow",) if tensorflow else ()), *(("jax",) if machine.has_jax() else ()))
    model = processor.model()
    return Host(
        cpu_model=model,
        cores=psutil.cpu_count(logical=False) or os.cpu_count() or 1,
        memory_bytes=psutil.virtual_memory().total,
        python=platform.python_version(),
        tensorflow=tensorflow,
        devices={
            "cpu": Device(available=True, count=os.cpu_count() or 1, name=model, engines=engines),
            **accelerators,
        },
    )


def _tensorflow() -> Any | None:
    """The TensorFlow module; None if only JAX is installed."""
    tf_process.keep_jax_out()
    try:
        import tensorflow as tf
    except ImportError:
        if machine.has_jax():
            return None
        raise
    return tf


def _with_jax(kind: str, device: Device, exists: bool) -> Device:
    """Adds JAX to the engines that can use the device. A TPU that TensorFlow holds cannot be
    asked again.
    """
    is_held = kind == "tpu" and device.available
    devices = machine.jax_devices(kind) if exists and not is_held else None
    if devices is None:
        return device
    if device.available:
        return device.model_copy(update={"engines": ("tensorflow", "jax")})
    return Device(available=True, count=devices.count, name=devices.name, engines=("jax",))


def _gpu(tf: Any | None) -> Device:
    gpus = tf.config.list_physical_devices("GPU") if tf else []
    if tf and gpus:
        details = tf.config.experimental.get_device_details(gpus[0])
        return Device(available=True, count=len(gpus), name=str(details.get("device_name", "GPU")))
    if machine.has_gpu():
        return _unavailable(
            "this TensorFlow cannot use the NVIDIA GPU of this host: run `make setup` again to"
            " install the GPU build."
        )
    return _unavailable(NO_GPU)


def _tpu(tf: Any | None) -> Device:
    if not machine.has_tpu():
        return _unavailable(NO_TPU)
    if importlib.util.find_spec("libtpu") is None:
        return _unavailable(
            "TensorFlow here has no TPU support (libtpu is not installed): run `make setup` on the"
            " TPU host."
        )
    cores = len(tf.config.list_logical_devices("TPU")) if tf else 0
    if cores == 0:
        return _unavailable(NO_CORE).model_copy(update={"is_coreless": True})
    return Device(available=True, count=cores, name="TPU")


def _unavailable(reason: str) -> Device:
    return Device(available=False, count=0, name="", reason=reason)


class HostProbe:
    """Runs `probe` once in a background thread, and stores its answer or error. All methods are
    thread-safe.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answer: Future[Host] | None = None

    def begin(self) -> None:
        """Starts the probe, without waiting, unless it has started already."""
        self._started()

    def again(self) -> None:
        """Deletes the answer and starts the probe again."""
        with self._lock:
            self._answer = None
        self.begin()

    def answer(self) -> Host:
        """Waits for the probe, some seconds. Raises AcceleratorError."""
        return self._started().result()

    def has_ended(self, timeout_s: float) -> bool:
        """Whether `answer` returns at once; waits for that at most `timeout_s` seconds."""
        return bool(wait([self._started()], timeout_s).done)

    def _started(self) -> Future[Host]:
        with self._lock:
            if self._answer is None:
                self._answer = Future()
                # A daemon, as a hung accelerator must not keep the dashboard from ending.
                threading.Thread(
                    target=_set_answer, args=(self._answer,), name="host-probe", daemon=True
                ).start()
            return self._answer


def _set_answer(answer: Future[Host]) -> None:
    try:
        answer.set_result(probe())
    except BaseException as error:  # `answer` raises it
        answer.set_exception(error)


if __name__ == "__main__":
    block_scikit_learn()
    with processes.scratch_folder() as scratch:
        framework_settings.use_private_keras_home(scratch)  # Keras refuses some of its settings
        print(detect().model_dump_json())
