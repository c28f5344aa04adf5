"""Taking the devices of one training, and handing them over to its processes."""

from __future__ import annotations

import os
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType

from gan_runtime.device_locks import holder, lock
from gan_runtime.device_locks.held import HANDED_VARIABLE, Held, told
from gan_runtime.device_locks.holder import Holder
from gan_runtime.device_locks.host_devices import HostDevice


@dataclass
class Claim:
    """`devices`: those that were taken; none where `blockers` have too many of them, or where `unknown` says why nobody knows of any.
    `beside`: other open files for the child, by the variable that tells it their number. Leaving it lets go of what was not handed over."""

    devices: list[HostDevice] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)
    blockers: list[tuple[HostDevice, Holder | None]] = field(default_factory=list)
    holder: Holder = field(default_factory=Holder)
    unknown: str = ""
    beside: dict[str, int] = field(default_factory=dict)

    @property
    def is_taken(self) -> bool:
        """Whether the devices are ours."""
        return bool(self.devices)

    def hand_over(self, environment: MutableMapping[str, str]) -> list[int]:
        """Tells a child by its environment which of its files the locks are; returns what it must inherit (`pass_fds`)."""
        environment[HANDED_VARIABLE] = told(self.held)
        environment.update({variable: str(number) for variable, number in self.beside.items()})
        return self._open_files()

    def started(self, pid: int) -> None:
        """Says who the trainer is."""
        self.holder = self.holder.model_copy(update={"pid": pid})
        self.tell()

    def tell(self) -> None:
        """Says whose the devices are, also where they are parts of another one: who wants that as a whole then knows for whom he waits."""
        for key in {key for device in self.devices for key in device.locks}:
            holder.write(key, self.holder)

    def __enter__(self) -> Claim:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number in self._open_files():
            os.close(number)
        self.held, self.beside = [], {}

    def _open_files(self) -> list[int]:
        return [*(one.number for one in self.held), *self.beside.values()]


def claim(devices: Sequence[HostDevice], count: int, who: Holder) -> Claim:
    """Takes `count` of the devices, the first that are free, or none at all.

    Raises:
        DeviceLockError: locks cannot be kept on this host.
    """
    made = Claim(holder=who)
    try:
        for index, device in enumerate(devices):
            if len(made.devices) == count or len(made.devices) + len(devices) - index < count:
                break  # no more are needed; or too few are left, and others may use them
            blocker = _take(device, made.held)
            if blocker is None:
                made.devices.append(device)
            else:
                made.blockers.append((device, holder.read(blocker)))
        if len(made.devices) < count:
            made.devices = []
        made.tell()
    finally:
        if not made.devices:
            made.__exit__(None, None, None)
    return made


def _take(device: HostDevice, held: list[Held]) -> str | None:
    """Takes the locks of one device, what it is a part of together with the other parts; adds them to those that are `held`, or returns which
    one somebody else has."""
    taken: list[Held] = []
    try:
        for key in device.locks:
            is_shared = key != device.key
            number = lock.take(key, is_shared)
            if number is None:
                return key
            taken.append(Held(number, key, is_shared))
        held += taken
        taken = []
        return None
    finally:
        for one in taken:
            os.close(one.number)
