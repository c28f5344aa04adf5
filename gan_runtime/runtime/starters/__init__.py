"""How a trainer comes to life: `local`, a process of its own on this host."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from gan_runtime.records.rundir import RunDir


@dataclass(frozen=True)
class Attempt:
    """One attempt of a run on an accelerator (cpu, gpu or tpu)."""

    run: RunDir
    number: int
    accelerator: str


class Starter(Protocol):
    """What the supervisor asks. Everything a starter knows stands in files, but for the children it has itself."""

    def start(self, attempt: Attempt) -> None:
        """Brings a trainer to life, which goes on without its starter. Raises OSError."""

    def alive(self, attempt: Attempt) -> bool:
        """Whether it trains, or may still do so."""

    def stop(self, attempt: Attempt, grace_seconds: float) -> None:
        """Asks it to save and end, and ends it by force when it has been asked for longer than that. May be called at each tick."""

    def bury(self, attempt: Attempt) -> str:
        """Ends what a trainer that is gone has left running; what is known of how it ended, such as "killed by signal 9", or ""."""

    def held(self, live: Iterable[str]) -> set[str]:
        """Accelerators of trainers that have not quite ended; `live`: ids of the runs that wait or train."""
