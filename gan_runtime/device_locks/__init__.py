"""Which device of this host is taken, and by whom, across all homes: a lock per device, held by the processes that train on it.

A lock lives exactly as long as the trainer: whoever starts one takes the lock and hands it over as an open file, so that the
system frees it when the last process of the training is gone, in whatever way, and not when a dashboard ends. Beside each lock
lies a small file that says whose it is. Its words are for people; only the lock decides.

Programs that clean /tmp remove files which look old, and a lock on a file that is gone keeps nobody out. So whoever holds locks
makes their files look new once in a while, and takes those again whose files are gone all the same.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from gan_runtime.base.errors import DeviceLockError
from gan_runtime.device_locks import host_devices, locks
from gan_runtime.device_locks.host_devices import HostDevice
from gan_runtime.device_locks.locks import Holder, folder
from gan_runtime.records.reasons import Cause, Reason, cause

# ---- locks that a process was handed, as its environment names them: 4=cpu,5=gpu=shared ------------------------------


HANDED_VARIABLE = "GAN_RUNTIME_HELD_LOCKS"
_SHARED = "shared"


@dataclass(frozen=True)
class HeldLock:
    """`number`: of the open file; `key`: the name of the lock; `is_shared`: with others."""

    number: int
    key: str
    is_shared: bool = False

    @property
    def word(self) -> str:
        """Such as 4=cpu."""
        return "=".join((str(self.number), self.key, *((_SHARED,) if self.is_shared else ())))


def for_child(held: list[HeldLock]) -> str:
    """For a child."""
    return ",".join(one.word for one in held)


def handed(environment: Mapping[str, str]) -> list[HeldLock]:
    """What this process was handed, kept from every program that it begins itself unless that is told to inherit them."""
    kept = []
    for word in environment.get(HANDED_VARIABLE, "").split(","):
        number, _, rest = word.partition("=")
        key, _, how = rest.partition("=")
        if number.isdecimal() and key:
            try:
                os.set_inheritable(int(number), False)
            except OSError:  # begun by hand, in the environment of a trainer
                continue
            kept.append(HeldLock(int(number), key, how == _SHARED))
    return kept


# ---- taking devices, and handing them to a trainer -------------------------------------------------------------------


@dataclass
class Claim:
    """`devices`: those that were taken; none where `blockers` have too many of them, or where `unknown` says why nobody knows of any.
    `beside`: other open files for the child, by the variable that tells it their number. Leaving it lets go of what was not handed over."""

    devices: list[HostDevice] = field(default_factory=list)
    held: list[HeldLock] = field(default_factory=list)
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
        environment[HANDED_VARIABLE] = for_child(self.held)
        environment.update({variable: str(number) for variable, number in self.beside.items()})
        return self._open_files()

    def started(self, pid: int) -> None:
        """Says who the trainer is."""
        self.holder = self.holder.model_copy(update={"pid": pid})
        self.tell()

    def tell(self) -> None:
        """Says whose the devices are, also where they are parts of another one: who wants that as a whole then knows for whom he waits."""
        for key in {key for device in self.devices for key in device.locks}:
            locks.write_holder(key, self.holder)

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
                made.blockers.append((device, locks.read_holder(blocker)))
        if len(made.devices) < count:
            made.devices = []
        made.tell()
    finally:
        if not made.devices:
            made.__exit__(None, None, None)
    return made


def _take(device: HostDevice, held: list[HeldLock]) -> str | None:
    """Takes the locks of one device, what it is a part of together with the other parts; adds them to those that are `held`, or returns which
    one somebody else has."""
    taken: list[HeldLock] = []
    try:
        for key in device.locks:
            is_shared = key != device.key
            number = locks.take(key, is_shared)
            if number is None:
                return key
            taken.append(HeldLock(number, key, is_shared))
        held += taken
        taken = []
        return None
    finally:
        for one in taken:
            os.close(one.number)


# ---- keeping locks where others find them ----------------------------------------------------------------------------


ROUND_SECONDS = 600.0  # cleaners wait for hours or days


def keep_in_place(held: list[HeldLock]) -> None:
    """In a thread that ends with its process."""
    if held:
        threading.Thread(target=_keep_for_ever, args=(held,), name="device-locks", daemon=True).start()


def kept_in_place(held: list[HeldLock]) -> list[HeldLock]:
    """What is held afterwards. A lock that somebody else has taken meanwhile, or another process of the same training, is tried again the
    next time."""
    return [_kept_lock(one) for one in held]


def _keep_for_ever(held: list[HeldLock]) -> None:
    while True:
        time.sleep(ROUND_SECONDS)
        held = kept_in_place(held)


def _kept_lock(one: HeldLock) -> HeldLock:
    with contextlib.suppress(DeviceLockError, OSError):
        if not locks.is_in_place(one.number, one.key):
            number = locks.take(one.key, one.is_shared)
            return one if number is None else HeldLock(number, one.key, one.is_shared)
        locks.freshen_lock(one.number)
        locks.freshen_holder(one.key)
    return one


# ---- what occupies each device ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Occupancy:
    """A device; `holder` is None while it is free."""

    device: HostDevice
    holder: Holder | None

    def is_of(self, home: Path) -> bool:
        """Whether a run of that home has it."""
        return self.holder is not None and self.holder.home == str(home)


def occupancies(patience_s: float = 0.0) -> list[Occupancy]:
    """The devices of this host, and whatever else somebody has taken. `patience_s`: with the driver of its GPUs.

    Raises:
        DeviceLockError: locks cannot be kept on this host.
    """
    devices = {device.key: device for device in host_devices.of_host(patience_s)}
    for path in sorted(folder().glob(f"*{locks.SUFFIX}")):
        key = path.name.removesuffix(locks.SUFFIX)
        if key not in devices and locks.is_taken(key):
            devices[key] = host_devices.by_key(key)
    return [Occupancy(device, occupant(key)) for key, device in devices.items()]


def occupant(key: str) -> Holder | None:
    """Who has a device now; one of whom nothing is known where nobody has said."""
    return (locks.read_holder(key) or Holder()) if locks.is_taken(key) else None


def is_free(device: HostDevice) -> bool:
    """Whether a training could take it now; where locks cannot be kept, its owner says why none starts."""
    try:
        return not any(map(locks.is_taken, device.locks))
    except DeviceLockError:
        return True


# ---- whose a device is, as parts of sentences: who shows text of another home on a page escapes it -------------------


def whose(holder: Holder | None, home: Path) -> str:
    """Such as "run quick-0007", "run quick-0007 of /data/gan" or "a training of ada". `home`: whose words they are."""
    if holder is None or not (holder.is_known or holder.user):
        return "another training"
    if not holder.is_known:
        return f"a training of {holder.user}"
    named = f" ({holder.name})" if holder.name and holder.name != holder.run_id else ""
    return f"run {holder.run_id}{named}" + ("" if holder.home == str(home) else f" of {holder.home}")


def taken_elsewhere(claim: Claim, home: Path) -> Cause | None:
    """Why a run of `home` waits, where another home has what it needs, or nobody knows what there is; None where only its own runs do. Stands
    in the run's journal, which may be given away, so it names no folder and no user."""
    if claim.unknown:
        return cause(Reason.DEVICES_UNKNOWN, message=claim.unknown)
    others = [(device, holder) for device, holder in claim.blockers if not holder or holder.home != str(home)]
    told = [
        f"{device.label} ({_whose_in_short(holder)}{f', since {holder.since:%Y-%m-%d %H:%M} UTC' if holder and holder.since else ''})"
        for device, holder in others
    ]
    return cause(Reason.DEVICES_TAKEN, devices=", ".join(told)) if told else None


def _whose_in_short(holder: Holder | None) -> str:
    if holder is None or not (holder.is_known or holder.user):
        return "another training"
    return f"run {holder.run_id} of another home" if holder.is_known else "a training of another user"
