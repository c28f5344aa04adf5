"""Speeds that the authors of a workload have published, for beside one's own. Nothing here was measured with this program."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Speed:
    """Seconds of an epoch on so many devices of one kind, with `batch_size_per_replica` rows on each."""

    system: str
    devices: int
    batch_size_per_replica: int
    seconds: float


@dataclass(frozen=True)
class PublishedSpeeds:
    """`images`: rows of an epoch of these tables. `source`: who measured, and where it stands. `setting`: what of it is unlike a run of
    this program, in a sentence."""

    source: str
    setting: str
    images: int
    speeds: tuple[Speed, ...]

    def images_per_s(self, speed: Speed) -> float:
        """All devices together."""
        return self.images / speed.seconds
