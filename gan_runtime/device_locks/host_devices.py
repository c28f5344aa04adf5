"""The devices of this host that a training takes for itself, found without a framework.

The CPU is one device, since a trainer uses all of its cores. Each GPU is one. A TPU is one: its library hands all chips of the
host to the process that asks first. A TPU elsewhere is one by its address.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass

from gan_runtime.device_locks import driver
from gan_runtime.spec import RunSpec

UNKNOWN = "waiting for nvidia-smi, which has not yet said which GPUs this host has"


@dataclass(frozen=True)
class HostDevice:
    """`key`: the name of its lock; `kind`: cpu, gpu or tpu; `label`: for people; `visible`: as CUDA_VISIBLE_DEVICES names it; `within`: keys of
    what it is a part of, which nobody may have as a whole meanwhile."""

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


def wanted(accelerator: str, spec: RunSpec | None) -> tuple[list[HostDevice], int]:
    """Devices that a run may train on, and on how many of them it does; none while the driver has not said which there are. `spec`: None
    where its options cannot be read."""
    if accelerator == "cpu":
        return [CPU], 1
    if accelerator == "tpu":
        return [_tpu_of(spec)], 1
    gpus = list(visible_gpus(os.environ.get("CUDA_VISIBLE_DEVICES")))
    return gpus, min(len(gpus), spec.replicas_in_all if spec else 1)


def why_unknown(accelerator: str) -> str:
    """Why nobody knows which devices there are, where that takes longer than is usual; else empty."""
    return UNKNOWN if accelerator == "gpu" and driver.DRIVER.is_silent else ""


def known(patience_s: float = 0.0) -> list[HostDevice]:
    """Those of this host that one can tell of without a framework. `patience_s`: with the driver of its GPUs."""
    return [CPU, *((_gpus(patience_s) and visible_gpus(os.environ.get("CUDA_VISIBLE_DEVICES"))) or ())]


def visible_gpus(chosen: str | None) -> tuple[HostDevice, ...]:
    """The GPUs that a trainer may see; none while the driver has not said. `chosen`: CUDA_VISIBLE_DEVICES, indexes as nvidia-smi counts them,
    or beginnings of UUIDs."""
    gpus = _gpus()
    if gpus is None:
        return ()
    if not gpus:
        return (ANY_GPU,)
    if chosen is None:
        return gpus
    found: dict[HostDevice, None] = {}  # each once, also where it is named twice
    for word in filter(None, (part.strip() for part in chosen.split(","))):
        gpu = _named(word, gpus)
        if gpu is None:
            break  # as CUDA does: what follows a device that is not there is not seen
        found[gpu] = None
    return tuple(found) or (ANY_GPU,)


def _named(word: str, gpus: tuple[HostDevice, ...]) -> HostDevice | None:
    if word.isdecimal():
        return gpus[int(word)] if int(word) < len(gpus) else None
    if not word.startswith("MIG-"):
        return next((gpu for gpu in gpus if gpu.visible.startswith(word)), None)
    said = driver.DRIVER.said()
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


def labelled(key: str) -> HostDevice:
    """A device by the name of its lock, which another home may have taken on a part of the host that is not seen here."""
    named = {device.key: device for device in (*known(), TPU, ANY_GPU)}
    if key in named:
        return named[key]
    kind = key.partition("-")[0]
    return HostDevice(key, kind, f"{kind.upper()} {key.partition('-')[2]}")


def _gpus(patience_s: float = 0.0) -> tuple[HostDevice, ...] | None:
    """Empty where the driver cannot say; then it is asked again, as another home may know the GPUs apart. None while it is being asked."""
    said = driver.DRIVER.said(patience_s)
    return None if said is None else read_gpus(said.gpus)


def read_gpus(text: str) -> tuple[HostDevice, ...]:
    """Lines such as "0, GPU-5a6e…, NVIDIA H200"."""
    parts = [[word.strip() for word in line.split(",", 2)] for line in text.splitlines()]
    return tuple(
        HostDevice(_key(uuid), "gpu", f"GPU {index} ({name})", uuid, (ANY_GPU.key,))
        for index, uuid, name in (part for part in parts if len(part) == 3)
    )


def read_parts(text: str) -> dict[str, str]:
    """UUID of each MIG part, and that of its GPU, out of lines such as "GPU 0: NVIDIA H200 (UUID: GPU-5a6e…)" and, below it,
    "  MIG 1g.18gb Device 0: (UUID: MIG-c738…)"."""
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
    return HostDevice(f"tpu-{hashlib.sha256(address.encode()).hexdigest()[:12]}", "tpu", f"TPU {address}")


def _key(uuid: str) -> str:
    return f"gpu-{re.sub(r'[^A-Za-z0-9-]', '_', uuid)[:100]}"
