"""What occupies each device of this host, for pages and commands: the trainings of all homes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gan_runtime.base.errors import DeviceLockError
from gan_runtime.device_locks import holder, host_devices, lock
from gan_runtime.device_locks.folder import folder
from gan_runtime.device_locks.holder import Holder
from gan_runtime.device_locks.host_devices import HostDevice


@dataclass(frozen=True)
class Look:
    """A device; `holder` is None while it is free."""

    device: HostDevice
    holder: Holder | None

    def is_of(self, home: Path) -> bool:
        """Whether a run of that home has it."""
        return self.holder is not None and self.holder.home == str(home)


def looks(patience_s: float = 0.0) -> list[Look]:
    """The devices of this host, and whatever else somebody has taken. `patience_s`: with the driver of its GPUs.

    Raises:
        DeviceLockError: locks cannot be kept on this host.
    """
    devices = {device.key: device for device in host_devices.known(patience_s)}
    for path in sorted(folder().glob(f"*{lock.SUFFIX}")):
        key = path.name.removesuffix(lock.SUFFIX)
        if key not in devices and lock.is_taken(key):
            devices[key] = host_devices.labelled(key)
    return [Look(device, look_at(key)) for key, device in devices.items()]


def look_at(key: str) -> Holder | None:
    """Who has a device now; one of whom nothing is known where nobody has said."""
    return (holder.read(key) or Holder()) if lock.is_taken(key) else None


def is_free(device: HostDevice) -> bool:
    """Whether a training could take it now; where locks cannot be kept, its owner says why none starts."""
    try:
        return not any(map(lock.is_taken, device.locks))
    except DeviceLockError:
        return True
