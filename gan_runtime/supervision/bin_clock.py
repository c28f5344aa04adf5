"""The clock of a home's bin: seconds that have passed for certain, whatever the clock of the
machine is set to.

While the machine runs, the time since its start counts, which nobody can set. Across a restart only
the time of day is left, which may be wrong: it counts for one day at most. So a home that is opened
daily counts right, one that is opened after a month counts a day, and runs are removed late rather
than early.
"""

from __future__ import annotations

import contextlib
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock

from gan_runtime.records import run_files
from gan_runtime.records.run_folder import write_whole

DAY_S = 86_400.0
MOST_UNSEEN_S = DAY_S  # that a restart of the machine counts for
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_STATE, _LOCK = ".clock.json", ".clock.lock"


@dataclass(frozen=True)
class Moment:
    """`day_s`: the time of day, in seconds since 1970; `boot`: id of this start of the machine,
    empty where it has none;
    `up_s`: since then, with the time in which it slept.
    """

    day_s: float
    boot: str
    up_s: float

    @classmethod
    def now(cls) -> Moment:
        """The present."""
        boot = ""
        with contextlib.suppress(OSError):
            boot = _BOOT.read_text(encoding="ascii").strip()
        up_s = (
            time.clock_gettime(time.CLOCK_BOOTTIME)
            if hasattr(time, "CLOCK_BOOTTIME")
            else time.monotonic()
        )
        return cls(time.time(), boot, up_s)


@dataclass(frozen=True)
class Count:
    """`seconds` had been counted at a moment."""

    seconds: float
    moment: Moment

    def at(self, moment: Moment) -> float:
        """Seconds that are counted at a later moment."""
        if moment.boot and moment.boot == self.moment.boot:
            return self.seconds + max(0.0, moment.up_s - self.moment.up_s)
        return self.seconds + min(max(0.0, moment.day_s - self.moment.day_s), MOST_UNSEEN_S)


def read(folder: Path, moment: Moment, least: float = 0.0) -> float:
    """The seconds by now, without writing them down.

    `least`: what they are at least, should their file be lost.
    """
    kept = _kept(folder / _STATE)
    return least if kept is None else max(least, kept.at(moment))


def advance(folder: Path, moment: Moment, least: float = 0.0) -> float:
    """As `read`, and writes them down. Raises HomeError when the disk does not take it."""
    with FileLock(folder / _LOCK):
        seconds = read(folder, moment, least)
        write_whole(
            folder / _STATE, json.dumps({"seconds": seconds, "moment": asdict(moment)}) + "\n"
        )
    return seconds


def _kept(path: Path) -> Count | None:
    """None where there is none, or one that nobody can read."""
    try:
        content = json.loads(run_files.content(path))
        moment = content["moment"]
        return Count(
            float(content["seconds"]),
            Moment(float(moment["day_s"]), str(moment["boot"]), float(moment["up_s"])),
        )
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
