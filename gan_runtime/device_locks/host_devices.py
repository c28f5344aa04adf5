"""The devices of this host that a training can take, listed without a framework.

The CPU is one device, since a trainer uses all of its cores. Each GPU is one. A TPU is one: its
library gives all chips of the host to the first process. A TPU on another machine is one, by its
address. The GPU driver is queried in the background, so that a hung driver does not block the owner
of a home.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from gan_runtime.spec import RunSpec

# ---- the driver of the GPUs ----------------------------------------------------------------------


PROGRAM = "nvidia-smi"
ANSWER_SECONDS = 20.0  # a sleeping driver needs some
RETRY_SECONDS = 10.0  # after a failure
SILENT_SECONDS = 3.0  # after these, pages report that it does not answer


@dataclass(frozen=True)
class DriverAnswer:
    """`gpus`: a line for each, such as "0, GPU-5a6e…, NVIDIA H200"; `parts`: the same list, each
    with its MIG parts below it.
    """

    gpus: str
    parts: str


NO_ANSWER = DriverAnswer("", "")  # there is no driver, or it fails


class Driver:
    """The answer of the GPU driver. All methods are thread-safe. An answer is cached permanently, a
    failure for RETRY_SECONDS.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._changed = clock, threading.Condition()
        self._answer: DriverAnswer | None = None  # None before the first answer or failure
        self._asked_s: float | None = None  # begin of the question that is open
        self._failed_s = float("-inf")

    def answer(self, timeout_s: float = 0.0) -> DriverAnswer | None:
        """The answer; None until the driver has answered or failed. Waits at most `timeout_s`
        seconds.
        """
        if shutil.which(PROGRAM) is None:
            return NO_ANSWER
        with self._changed:
            if (
                self._answer in (None, NO_ANSWER)
                and self._asked_s is None
                and self._clock() - self._failed_s >= RETRY_SECONDS
            ):
                self._asked_s = self._clock()
                # A daemon, as a driver that hangs must not prevent a process from ending.
                threading.Thread(target=self._ask, name="gpu-driver", daemon=True).start()
            self._changed.wait_for(lambda: self._asked_s is None, timeout_s)
            return self._answer

    @property
    def is_silent(self) -> bool:
        """Whether the first answer takes longer than usual."""
        with self._changed:
            begin = self._asked_s
            return (
                self._answer is None
                and begin is not None
                and self._clock() - begin >= SILENT_SECONDS
            )

    def _ask(self) -> None:
        try:
            answer = _answer()
        except (OSError, subprocess.SubprocessError):
            answer = NO_ANSWER
        with self._changed:
            self._answer, self._asked_s = answer, None
            if answer == NO_ANSWER:
                self._failed_s = self._clock()
            self._changed.notify_all()


def _answer() -> DriverAnswer:
    """Queries the driver. Raises OSError, subprocess.SubprocessError."""
    gpus = _output("--query-gpu=index,uuid,name", "--format=csv,noheader")
    return DriverAnswer(gpus, _output("--list-gpus")) if gpus else NO_ANSWER


def _output(*words: str) -> str:
    command = [PROGRAM, *words]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=ANSWER_SECONDS, check=True
    ).stdout


DRIVER = Driver()


# ---- devices -------------------------------------------------------------------------------------


GPUS_UNKNOWN = "waiting for nvidia-smi, which has not yet listed the GPUs of this host"


@dataclass(frozen=True)
class HostDevice:
    """`key`: the name of its lock; `kind`: cpu, gpu or tpu; `label`: in sentences; `visible`: as
    CUDA_VISIBLE_DEVICES names it.

    `within`: keys of the devices that it is a part of, which cannot be locked as a whole at the
    same time.
    """

    key: str
    kind: str
    label: str
    visible: str = ""
    within: tuple[str, ...] = ()

    @property
    def locks(self) -> tuple[str, ...]:
        """Keys of all locks that it takes, its own first."""
        return (self.key, *self.within)


CPU = HostDevice("cpu", "cpu", "CPU")
TPU = HostDevice("tpu", "tpu", "TPU")
ANY_GPU = HostDevice("gpu", "gpu", "GPU")  # used if no driver lists the GPUs


def of_run(accelerator: str, spec: RunSpec | None) -> tuple[list[HostDevice], int]:
    """The devices that a run can train on, and the number that it needs; no devices until the
    driver has listed them. `spec`: None if the options are unreadable.
    """
    if accelerator == "cpu":
        return [CPU], 1
    if accelerator == "tpu":
        return [_tpu_of(spec)], 1
    gpus = list(visible_gpus(os.environ.get("CUDA_VISIBLE_DEVICES")))
    return gpus, min(len(gpus), spec.replicas_in_all if spec else 1)


def why_unknown(accelerator: str) -> str:
    """The reason why no devices are listed yet, once that takes longer than usual; else ""."""
    return GPUS_UNKNOWN if accelerator == "gpu" and DRIVER.is_silent else ""


def of_host(timeout_s: float = 0.0) -> list[HostDevice]:
    """The devices of this host. `timeout_s`: seconds to wait for the driver of the GPUs."""
    return [
        CPU,
        *((_gpus(timeout_s) and visible_gpus(os.environ.get("CUDA_VISIBLE_DEVICES"))) or ()),
    ]


def visible_gpus(selection: str | None) -> tuple[HostDevice, ...]:
    """The GPUs that a trainer can use; none until the driver has listed them.

    `selection`: CUDA_VISIBLE_DEVICES, indexes of nvidia-smi or prefixes of UUIDs.
    """
    gpus = _gpus()
    if gpus is None:
        return ()
    if not gpus:
        return (ANY_GPU,)
    if selection is None:
        return gpus
    visible: dict[HostDevice, None] = {}  # without duplicates
    for word in filter(None, (part.strip() for part in selection.split(","))):
        gpu = _named(word, gpus)
        if gpu is None:
            break  # as CUDA does: an unknown device hides those after it
        visible[gpu] = None
    return tuple(visible) or (ANY_GPU,)


def _named(word: str, gpus: tuple[HostDevice, ...]) -> HostDevice | None:
    if word.isdecimal():
        return gpus[int(word)] if int(word) < len(gpus) else None
    if not word.startswith("MIG-"):
        return next((gpu for gpu in gpus if gpu.visible.startswith(word)), None)
    answer = DRIVER.answer()
    uuid, whole = next(
        (
            (part, gpu)
            for part, gpu in read_parts(answer.parts if answer else "").items()
            if part.startswith(word)
        ),
        (word, ""),
    )
    within = (_key(whole), ANY_GPU.key) if whole else (ANY_GPU.key,)
    return HostDevice(_key(uuid), "gpu", f"GPU part {uuid[:12]}", uuid, within)


def by_key(key: str) -> HostDevice:
    """A device by the name of its lock, even if it is visible only to another home."""
    named = {device.key: device for device in (*of_host(), TPU, ANY_GPU)}
    if key in named:
        return named[key]
    kind = key.partition("-")[0]
    return HostDevice(key, kind, f"{kind.upper()} {key.partition('-')[2]}")


def _gpus(timeout_s: float = 0.0) -> tuple[HostDevice, ...] | None:
    """Empty where the driver fails, which is asked again later; None until it has answered."""
    answer = DRIVER.answer(timeout_s)
    return None if answer is None else read_gpus(answer.gpus)


def read_gpus(text: str) -> tuple[HostDevice, ...]:
    """Lines such as "0, GPU-5a6e…, NVIDIA H200"."""
    parts = [[word.strip() for word in line.split(",", 2)] for line in text.splitlines()]
    return tuple(
        HostDevice(_key(uuid), "gpu", f"GPU {index} ({name})", uuid, (ANY_GPU.key,))
        for index, uuid, name in (part for part in parts if len(part) == 3)
    )


def read_parts(text: str) -> dict[str, str]:
    """UUID of each MIG part → UUID of its GPU.

    Read from lines such as "GPU 0: NVIDIA H200 (UUID: GPU-5a6e…)" and, below it, "  MIG 1g.18gb
    Device 0: (UUID: MIG-c738…)".
    """
    parts, gpu = {}, ""
    for kind, uuid in re.findall(r"^\s*(GPU|MIG)\b.*\(UUID: ([^)]+)\)", text, flags=re.MULTILINE):
        if kind == "GPU":
            gpu = uuid
        else:
            parts[uuid] = gpu
    return parts


def _tpu_of(spec: RunSpec | None) -> HostDevice:
    address = spec.tpu_address if spec else "local"
    if address == "local":
        return TPU
    return HostDevice(
        f"tpu-{hashlib.sha256(address.encode()).hexdigest()[:12]}", "tpu", f"TPU {address}"
    )


def _key(uuid: str) -> str:
    return f"gpu-{re.sub(r'[^A-Za-z0-9-]', '_', uuid)[:100]}"
