"""The devices of this host in use, and the runs of any home that use them: one lock per device,
held by the processes that train on it.

A starter takes the lock and passes it to its trainer as an open file. So the system releases it
when the last process of the training exits, and not when the dashboard ends. A small file next to
each lock names its holder, for users; only the lock decides.

Programs that clean /tmp remove old files, and a lock on a removed file excludes no process. So
holders touch their files regularly, and take a lock again if its file is missing.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType

from gan_runtime.base.errors import DeviceLockError
from gan_runtime.device_locks import host_devices, locks
from gan_runtime.device_locks.host_devices import HostDevice
from gan_runtime.device_locks.locks import Holder, folder
from gan_runtime.records.states import Cause, Reason, cause

# ---- inherited locks, as the environment names them: 4=cpu,5=gpu=shared --------------------------


LOCKS_VARIABLE = "GAN_RUNTIME_HELD_LOCKS"
_SHARED = "shared"


@dataclass(frozen=True)
class DeviceLock:
    """A held lock. `number`: file descriptor; `key`: the name of the lock; `is_shared`: whether
    others can hold it too.
    """

    number: int
    key: str
    is_shared: bool = False

    @property
    def word(self) -> str:
        """The text form, such as "4=cpu"."""
        return "=".join((str(self.number), self.key, *((_SHARED,) if self.is_shared else ())))


def as_variable(open_locks: list[DeviceLock]) -> str:
    """The value of LOCKS_VARIABLE for a child process."""
    return ",".join(lock.word for lock in open_locks)


def inherited_locks(environment: Mapping[str, str]) -> list[DeviceLock]:
    """The locks that this process has inherited. Programs that it starts inherit them only by
    `pass_fds`.
    """
    inherited = []
    for word in environment.get(LOCKS_VARIABLE, "").split(","):
        number, _, rest = word.partition("=")
        key, _, how = rest.partition("=")
        if number.isdecimal() and key:
            try:
                os.set_inheritable(int(number), False)
            except OSError:  # started by hand, in the environment of a trainer
                continue
            inherited.append(DeviceLock(int(number), key, how == _SHARED))
    return inherited


# ---- taking devices, and passing them to a trainer -----------------------------------------------


@dataclass
class Claim:
    """`devices`: the taken devices; empty if `blockers` have too many, or if none are listed yet,
    for the reason `unknown`, or for the reason `why` of another place where the run trains.
    `extra_files`: further open files for the child, by the environment variable with the
    descriptor. At the end of its block, the claim closes its files in this process.
    """

    devices: list[HostDevice] = field(default_factory=list)
    open_locks: list[DeviceLock] = field(default_factory=list)
    blockers: list[tuple[HostDevice, Holder | None]] = field(default_factory=list)
    holder: Holder = field(default_factory=Holder)
    unknown: str = ""
    why: Cause | None = None
    extra_files: dict[str, int] = field(default_factory=dict)

    @property
    def is_taken(self) -> bool:
        """Whether the claim has its devices."""
        return bool(self.devices)

    def hand_over(
        self, environment: MutableMapping[str, str], first_number: int | None = None
    ) -> list[int]:
        """Adds the locks to the environment of a child; returns the files that it must inherit
        (`pass_fds`). `first_number`: the child has them under descriptors from this one on, instead
        of those of this process.
        """
        files = self._open_files()
        numbers = files if first_number is None else range(first_number, first_number + len(files))
        in_child = dict(zip(files, numbers, strict=True))
        environment[LOCKS_VARIABLE] = as_variable(
            [replace(lock, number=in_child[lock.number]) for lock in self.open_locks]
        )
        for variable, file in self.extra_files.items():
            environment[variable] = str(in_child[file])
        return files

    def started(self, pid: int) -> None:
        """Adds the trainer to the holder files."""
        self.holder = self.holder.model_copy(update={"pid": pid})
        self.write_holders()

    def write_holders(self) -> None:
        """Names the holder of the devices, and of the whole devices that they are parts of."""
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
        self.open_locks, self.extra_files = [], {}

    def _open_files(self) -> list[int]:
        return [*(lock.number for lock in self.open_locks), *self.extra_files.values()]


def claim(devices: Sequence[HostDevice], count: int, who: Holder) -> Claim:
    """Takes the first `count` free devices, or none at all.

    Raises:
        DeviceLockError: locks cannot be used on this host.
    """
    result = Claim(holder=who)
    try:
        for index, device in enumerate(devices):
            if len(result.devices) == count or len(result.devices) + len(devices) - index < count:
                break  # enough are taken, or too few are left
            blocker = _take(device, result.open_locks)
            if blocker is None:
                result.devices.append(device)
            else:
                result.blockers.append((device, locks.read_holder(blocker)))
        if len(result.devices) < count:
            result.devices = []
        result.write_holders()
    finally:
        if not result.devices:
            result.__exit__(None, None, None)
    return result


def _take(device: HostDevice, open_locks: list[DeviceLock]) -> str | None:
    """Takes the locks of one device and adds them to `open_locks`, or returns the key of a lock of
    another process. Parts of a device share the lock of the whole device.
    """
    acquired: list[DeviceLock] = []
    try:
        for key in device.locks:
            is_shared = key != device.key
            number = locks.take(key, is_shared)
            if number is None:
                return key
            acquired.append(DeviceLock(number, key, is_shared))
        open_locks += acquired
        acquired = []
        return None
    finally:
        for lock in acquired:
            os.close(lock.number)


# ---- refreshing locks ----------------------------------------------------------------------------


REFRESH_SECONDS = 600.0  # programs that clean /tmp wait for hours or days


def start_refreshing(open_locks: list[DeviceLock]) -> None:
    """Refreshes the locks in a thread that ends with its process."""
    if open_locks:
        threading.Thread(
            target=_refresh_for_ever, args=(open_locks,), name="device-locks", daemon=True
        ).start()


def refresh(open_locks: list[DeviceLock]) -> list[DeviceLock]:
    """Touches the files of the locks, and takes a lock again whose file is missing. Returns the
    locks afterwards; a lock that another process has taken is retried the next time.
    """
    return [_refresh_lock(lock) for lock in open_locks]


def _refresh_for_ever(open_locks: list[DeviceLock]) -> None:
    while True:
        time.sleep(REFRESH_SECONDS)
        open_locks = refresh(open_locks)


def _refresh_lock(lock: DeviceLock) -> DeviceLock:
    with contextlib.suppress(DeviceLockError, OSError):
        if not locks.is_in_place(lock.number, lock.key):
            number = locks.take(lock.key, lock.is_shared)
            return lock if number is None else DeviceLock(number, lock.key, lock.is_shared)
        locks.touch_lock(lock.number)
        locks.touch_holder(lock.key)
    return lock


# ---- the holder of each device -------------------------------------------------------------------


@dataclass(frozen=True)
class Occupancy:
    """A device; `holder` is None while it is free."""

    device: HostDevice
    holder: Holder | None

    def is_of(self, home: Path) -> bool:
        """Whether a run of that home uses it."""
        return self.holder is not None and self.holder.home == str(home)


def occupancies(timeout_s: float = 0.0) -> list[Occupancy]:
    """The devices of this host, and other devices with a holder. `timeout_s`: seconds to wait for
    the GPU driver.

    Raises:
        DeviceLockError: locks cannot be used on this host.
    """
    devices = {device.key: device for device in host_devices.of_host(timeout_s)}
    for path in sorted(folder().glob(f"*{locks.SUFFIX}")):
        key = path.name.removesuffix(locks.SUFFIX)
        if key not in devices and locks.is_taken(key):
            devices[key] = host_devices.by_key(key)
    return [Occupancy(device, occupant(key)) for key, device in devices.items()]


def occupant(key: str) -> Holder | None:
    """The holder of a device; empty if no file names it, None for a free device."""
    return (locks.read_holder(key) or Holder()) if locks.is_taken(key) else None


def is_free(device: HostDevice) -> bool:
    """Whether a training could take the device. True where locks cannot be used: the start of a
    training then reports why.
    """
    try:
        return not any(map(locks.is_taken, device.locks))
    except DeviceLockError:
        return True


# ---- the holder in a sentence: pages must escape text of another home ----------------------------


def holder_text(holder: Holder | None, home: Path) -> str:
    """The holder as text: "run quick-0007", "run quick-0007 of /data/gan" or "a training of ada".
    `home`: the reader's home.
    """
    if holder is None or not (holder.is_known or holder.user):
        return "another training"
    if not holder.is_known:
        return f"a training of {holder.user}"
    named = f" ({holder.name})" if holder.name and holder.name != holder.run_id else ""
    return f"run {holder.run_id}{named}" + (
        "" if holder.home == str(home) else f" of {holder.home}"
    )


def wait_cause(claim: Claim, home: Path) -> Cause | None:
    """The cause for which a run of `home` waits: another home uses its devices, or none are listed
    yet; None if runs of the same home use them.

    The cause is stored in the run's journal, which can be shared, so it names no folder or user.
    """
    if claim.why is not None:
        return claim.why
    if claim.unknown:
        return cause(Reason.DEVICES_UNKNOWN, message=claim.unknown)
    holders = [
        (device, holder)
        for device, holder in claim.blockers
        if not holder or holder.home != str(home)
    ]
    devices = [
        f"{device.label} ({_anonymous_holder(holder)}{_since(holder)})"
        for device, holder in holders
    ]
    return cause(Reason.DEVICES_TAKEN, devices=", ".join(devices)) if devices else None


def _since(holder: Holder | None) -> str:
    return f", since {holder.since:%Y-%m-%d %H:%M} UTC" if holder and holder.since else ""


def _anonymous_holder(holder: Holder | None) -> str:
    if holder is None or not (holder.is_known or holder.user):
        return "another training"
    return (
        f"run {holder.run_id} of another home" if holder.is_known else "a training of another user"
    )
