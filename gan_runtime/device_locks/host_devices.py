"""The devices of this host that a training takes for itself, found without a framework.

The CPU is one device, since a trainer uses all of its cores. Each GPU is one. A TPU is one: its
library hands all chips of the host to the process that asks first. A TPU elsewhere is one by its
address. The driver of the GPUs is asked in the background, so one that hangs does not hold up an
owner between two ticks.
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

# ---- what the driver says ------------------------------------------------------------------------


PROGRAM = "nvidia-smi"
LOOK_SECONDS = 20.0  # a driver that wakes up takes some
AGAIN_SECONDS = 10.0  # from an answer that was none to the next question
SILENT_SECONDS = 3.0  # from then on pages say that it does not answer


@dataclass(frozen=True)
class DriverAnswer:
    """`gpus`: a line for each, such as "0, GPU-5a6e…, NVIDIA H200"; `listed`: the same list with
    the MIG parts of each one below it.
    """

    gpus: str
    listed: str


NOTHING = DriverAnswer("", "")  # there is no driver, or it cannot say


class Driver:
    """Of one process.

    Every method may be called from any thread. An answer is kept for good, a failure for a while.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._changed = clock, threading.Condition()
        self._answer: DriverAnswer | None = None  # None: it has never ended
        self._asked_s: float | None = None  # since when it is being asked
        self._failed_s = float("-inf")

    def answer(self, patience_s: float = 0.0) -> DriverAnswer | None:
        """None until it has answered or failed. Waits at most `patience_s` seconds for that."""
        if shutil.which(PROGRAM) is None:
            return NOTHING
        with self._changed:
            if (
                self._answer in (None, NOTHING)
                and self._asked_s is None
                and self._clock() - self._failed_s >= AGAIN_SECONDS
            ):
                self._asked_s = self._clock()
                # A daemon, as a driver that hangs must not keep a process from ending.
                threading.Thread(target=self._ask, name="gpu-driver", daemon=True).start()
            self._changed.wait_for(lambda: self._asked_s is None, patience_s)
            return self._answer

    @property
    def is_silent(self) -> bool:
        """Whether the first answer takes longer than is usual."""
        with self._changed:
            begin = self._asked_s
            return (
                self._answer is None
                and begin is not None
                and self._clock() - begin >= SILENT_SECONDS
            )

    def _ask(self) -> None:
        try:
            said = _answer()
        except (OSError, subprocess.SubprocessError):
            said = NOTHING
        with self._changed:
            self._answer, self._asked_s = said, None
            if said == NOTHING:
                self._failed_s = self._clock()
            self._changed.notify_all()


def _answer() -> DriverAnswer:
    """Raises OSError, subprocess.SubprocessError."""
    gpus = _output("--query-gpu=index,uuid,name", "--format=csv,noheader")
    return DriverAnswer(gpus, _output("--list-gpus")) if gpus else NOTHING


def _output(*words: str) -> str:
    command = [PROGRAM, *words]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=LOOK_SECONDS, check=True
    ).stdout


DRIVER = Driver()


# ---- devices -------------------------------------------------------------------------------------


NOT_YET_LISTED = "waiting for nvidia-smi, which has not yet said which GPUs this host has"


@dataclass(frozen=True)
class HostDevice:
    """`key`: the name of its lock; `kind`: cpu, gpu or tpu; `label`: for people; `visible`: as
    CUDA_VISIBLE_DEVICES names it.

    `within`: keys of what it is a part of, which nobody may have as a whole meanwhile.
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
ANY_GPU = HostDevice("gpu", "gpu", "GPU")  # where no driver tells them apart


def of_run(accelerator: str, spec: RunSpec | None) -> tuple[list[HostDevice], int]:
    """Devices that a run may train on, and on how many of them it does; none until the driver has
    listed them.

    `spec`: None where its options cannot be read.
    """
    if accelerator == "cpu":
        return [CPU], 1
    if accelerator == "tpu":
        return [_tpu_of(spec)], 1
    gpus = list(visible_gpus(os.environ.get("CUDA_VISIBLE_DEVICES")))
    return gpus, min(len(gpus), spec.replicas_in_all if spec else 1)


def why_unknown(accelerator: str) -> str:
    """Why no devices are listed yet, where that takes longer than usual; else empty."""
    return NOT_YET_LISTED if accelerator == "gpu" and DRIVER.is_silent else ""


def of_host(patience_s: float = 0.0) -> list[HostDevice]:
    """Those of this host, found without a framework.

    `patience_s`: seconds to wait for the driver of its GPUs.
    """
    return [
        CPU,
        *((_gpus(patience_s) and visible_gpus(os.environ.get("CUDA_VISIBLE_DEVICES"))) or ()),
    ]


def visible_gpus(chosen: str | None) -> tuple[HostDevice, ...]:
    """The GPUs that a trainer may see; none until the driver has listed them.

    `chosen`: CUDA_VISIBLE_DEVICES, indexes as nvidia-smi counts them, or beginnings of UUIDs.
    """
    gpus = _gpus()
    if gpus is None:
        return ()
    if not gpus:
        return (ANY_GPU,)
    if chosen is None:
        return gpus
    visible: dict[HostDevice, None] = {}  # each once, also where it is named twice
    for word in filter(None, (part.strip() for part in chosen.split(","))):
        gpu = _named(word, gpus)
        if gpu is None:
            break  # as CUDA does: what follows a device that is not there is not seen
        visible[gpu] = None
    return tuple(visible) or (ANY_GPU,)


def _named(word: str, gpus: tuple[HostDevice, ...]) -> HostDevice | None:
    if word.isdecimal():
        return gpus[int(word)] if int(word) < len(gpus) else None
    if not word.startswith("MIG-"):
        return next((gpu for gpu in gpus if gpu.visible.startswith(word)), None)
    said = DRIVER.answer()
    uuid, whole = next(
        (
            (part, gpu)
            for part, gpu in read_parts(said.listed if said else "").items()
            if part.startswith(word)
        ),
        (word, ""),
    )
    within = (_key(whole), ANY_GPU.key) if whole else (ANY_GPU.key,)
    return HostDevice(_key(uuid), "gpu", f"GPU part {uuid[:12]}", uuid, within)


def by_key(key: str) -> HostDevice:
    """A device by the name of its lock, which may be one that only another home can see."""
    named = {device.key: device for device in (*of_host(), TPU, ANY_GPU)}
    if key in named:
        return named[key]
    kind = key.partition("-")[0]
    return HostDevice(key, kind, f"{kind.upper()} {key.partition('-')[2]}")


def _gpus(patience_s: float = 0.0) -> tuple[HostDevice, ...] | None:
    """Empty where the driver fails, which is asked again later; None until it has answered."""
    said = DRIVER.answer(patience_s)
    return None if said is None else read_gpus(said.gpus)


def read_gpus(text: str) -> tuple[HostDevice, ...]:
    """Lines such as "0, GPU-5a6e…, NVIDIA H200"."""
    parts = [[word.strip() for word in line.split(",", 2)] for line in text.splitlines()]
    return tuple(
        HostDevice(_key(uuid), "gpu", f"GPU {index} ({name})", uuid, (ANY_GPU.key,))
        for index, uuid, name in (part for part in parts if len(part) == 3)
    )


def read_parts(text: str) -> dict[str, str]:
    """UUID of each MIG part, and that of its GPU.

    Out of lines such as "GPU 0: NVIDIA H200 (UUID: GPU-5a6e…)" and, below it, "  MIG 1g.18gb Device
    0: (UUID: MIG-c738…)".
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
