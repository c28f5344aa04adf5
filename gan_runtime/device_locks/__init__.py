"""Which device of this host is taken, and by which run of any home: one lock per device, held by
the processes that train on it.

A lock lives exactly as long as its trainer: the starter takes it and hands it over as an open file.
So the system frees it when the last process of the training is gone, in whatever way, and not when
a dashboard ends. A small file next to each lock names its holder. It is for people; only the lock
decides.

Programs that clean /tmp remove old files, and a lock on a removed file keeps nobody out. So holders
of locks touch their files once in a while, and take those locks again whose files are gone in spite
of that.
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
from gan_runtime.records.states import Cause, Reason, cause

# ---- locks that a process was handed, as its environment names them: 4=cpu,5=gpu=shared ----------


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
    return ",".join(lock.word for lock in held)


def handed(environment: Mapping[str, str]) -> list[HeldLock]:
    """The locks of this process.

    Programs that it starts do not inherit them unless `pass_fds` names them.
    """
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


# ---- taking devices, and handing them to a trainer -----------------------------------------------


@dataclass
class Claim:
    """`devices`: those that were taken; none where `blockers` have too many of them, or `unknown`
    says why none are listed.

    `beside`: other open files for the child, by the environment variable that holds their number.
    Leaving the claim closes what was not handed over.
    """

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
        """Names the locks in the environment of a child; returns the files that it must inherit
        (`pass_fds`).
        """
        environment[HANDED_VARIABLE] = for_child(self.held)
        environment.update({variable: str(number) for variable, number in self.beside.items()})
        return self._open_files()

    def started(self, pid: int) -> None:
        """Names the trainer."""
        self.holder = self.holder.model_copy(update={"pid": pid})
        self.write_holders()

    def write_holders(self) -> None:
        """Names the holder of the devices, and of those that they are parts of: who wants a whole
        one then sees it.
        """
        for key in {key for device in self.devices for key in device.locks}:
            locks.write_holder(key, self.holder)

    def __enter__(self) -> Claim:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number in self._open_files():
            os.close(number)
        self.held, self.beside = [], {}

    def _open_files(self) -> list[int]:
        return [*(lock.number for lock in self.held), *self.beside.values()]


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
        made.write_holders()
    finally:
        if not made.devices:
            made.__exit__(None, None, None)
    return made


def _take(device: HostDevice, held: list[HeldLock]) -> str | None:
    """Takes the locks of one device and adds them to `held`, or returns the key that somebody else
    has.

    The lock of what it is a part of is shared with the other parts.
    """
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
        for lock in taken:
            os.close(lock.number)


# ---- keeping locks where others find them --------------------------------------------------------


ROUND_SECONDS = 600.0  # cleaners wait for hours or days


def keep_in_place(held: list[HeldLock]) -> None:
    """In a thread that ends with its process."""
    if held:
        threading.Thread(
            target=_keep_for_ever, args=(held,), name="device-locks", daemon=True
        ).start()


def kept_in_place(held: list[HeldLock]) -> list[HeldLock]:
    """The locks that are held afterwards.

    One that somebody else has taken meanwhile is tried again the next time.
    """
    return [_kept_lock(lock) for lock in held]


def _keep_for_ever(held: list[HeldLock]) -> None:
    while True:
        time.sleep(ROUND_SECONDS)
        held = kept_in_place(held)


def _kept_lock(lock: HeldLock) -> HeldLock:
    with contextlib.suppress(DeviceLockError, OSError):
        if not locks.is_in_place(lock.number, lock.key):
            number = locks.take(lock.key, lock.is_shared)
            return lock if number is None else HeldLock(number, lock.key, lock.is_shared)
        locks.freshen_lock(lock.number)
        locks.freshen_holder(lock.key)
    return lock


# ---- what occupies each device -------------------------------------------------------------------


@dataclass(frozen=True)
class Occupancy:
    """A device; `holder` is None while it is free."""

    device: HostDevice
    holder: Holder | None

    def is_of(self, home: Path) -> bool:
        """Whether a run of that home has it."""
        return self.holder is not None and self.holder.home == str(home)


def occupancies(patience_s: float = 0.0) -> list[Occupancy]:
    """The devices of this host, and others that somebody has taken.

    `patience_s`: seconds to wait for the driver of its GPUs.

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
    """Who has a device now; an empty holder where no file names one."""
    return (locks.read_holder(key) or Holder()) if locks.is_taken(key) else None


def is_free(device: HostDevice) -> bool:
    """Whether a training could take it now; where locks cannot be kept, its owner says why none
    starts.
    """
    try:
        return not any(map(locks.is_taken, device.locks))
    except DeviceLockError:
        return True


# ---- whose a device is, as parts of sentences: who shows text of another home on a page escapes it


def whose(holder: Holder | None, home: Path) -> str:
    """Such as "run quick-0007", "run quick-0007 of /data/gan" or "a training of ada".

    `home`: the home of the reader.
    """
    if holder is None or not (holder.is_known or holder.user):
        return "another training"
    if not holder.is_known:
        return f"a training of {holder.user}"
    named = f" ({holder.name})" if holder.name and holder.name != holder.run_id else ""
    return f"run {holder.run_id}{named}" + (
        "" if holder.home == str(home) else f" of {holder.home}"
    )


def taken_elsewhere(claim: Claim, home: Path) -> Cause | None:
    """Why a run of `home` waits: another home has its devices, or none are listed yet.

    None where runs of its own have them.

    It goes into the run's journal, which may be given away, so it names no folder and no user.
    """
    if claim.unknown:
        return cause(Reason.DEVICES_UNKNOWN, message=claim.unknown)
    others = [
        (device, holder)
        for device, holder in claim.blockers
        if not holder or holder.home != str(home)
    ]
    words = [
        f"{device.label} ({_whose_in_short(holder)}{_since(holder)})" for device, holder in others
    ]
    return cause(Reason.DEVICES_TAKEN, devices=", ".join(words)) if words else None


def _since(holder: Holder | None) -> str:
    return f", since {holder.since:%Y-%m-%d %H:%M} UTC" if holder and holder.since else ""


def _whose_in_short(holder: Holder | None) -> str:
    if holder is None or not (holder.is_known or holder.user):
        return "another training"
    return (
        f"run {holder.run_id} of another home" if holder.is_known else "a training of another user"
    )
