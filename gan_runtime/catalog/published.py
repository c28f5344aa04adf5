"""Speeds that the authors of a workload have published, for beside one's own.

Nothing here was measured with this program.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Speed:
    """Seconds of an epoch on so many devices of one kind, with `batch_size_per_replica` rows
    on each.
    """

    system: str
    devices: int
    batch_size_per_replica: int
    seconds: float


@dataclass(frozen=True)
class PublishedSpeeds:
    """`images`: rows of an epoch of these tables.

    `source`: who measured, and where it stands. `setting`: what of it is unlike a run of this
    program, in a sentence.
    """

    source: str
    setting: str
    images: int
    speeds: tuple[Speed, ...]

    def images_per_s(self, speed: Speed) -> float:
        """All devices together."""
        return self.images / speed.seconds


@dataclass(frozen=True)
class PublishedScaling:
    """How an epoch of a workload gets faster on more devices.

    `who`: in a legend; `title`: of its table; `source`: of the caption.
    """

    who: str
    title: str
    source: str
    speeds: tuple[Speed, ...]


@dataclass(frozen=True)
class TrainingTime:
    """Seconds on a device, or on all cores of one. `batch_size`: as the table has it."""

    device: str
    batch_size: int
    seconds: float


@dataclass(frozen=True)
class PublishedTimes:
    """Training times by device and batch size.

    `title`: of their table; `source`: of its caption; `setting`: how they were measured.
    """

    title: str
    source: str
    setting: str
    times: tuple[TrainingTime, ...]

    @property
    def seconds(self) -> dict[str, dict[int, float]]:
        """Batch size to seconds, by device; what is not published is missing."""
        by_device: dict[str, dict[int, float]] = {}
        for time in self.times:
            by_device.setdefault(time.device, {})[time.batch_size] = time.seconds
        return by_device


@dataclass(frozen=True)
class CompiledMachine:
    """A machine for which an epoch is compiled.

    `topology`: the compiler's name of it; `system`: what `Speed` calls its devices.
    """

    topology: str
    title: str
    system: str


@dataclass(frozen=True)
class CompiledEpoch:
    """An epoch of which the cycles are counted, next to what its authors measured.

    `what`: the setting in a sentence; `batch_per_core`, `cores`: how it was trained. `plain`,
    `own`: titles of the authors' program and of this project's.
    """

    what: str
    published: PublishedSpeeds
    batch_per_core: int
    cores: int
    plain: str
    own: str
    machines: tuple[CompiledMachine, ...]

    def measured(self, system: str) -> Speed:
        """What the authors measured on as many cores of a machine."""
        speeds = self.published.speeds
        return next(
            speed for speed in speeds if (speed.system, speed.devices) == (system, self.cores)
        )
