"""How a trainer comes to life: `local`, a process of its own on this host."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from gan_runtime.device_locks import Claim
from gan_runtime.records.run_folder import RunDir


@dataclass(frozen=True)
class Attempt:
    """One attempt of a run on an accelerator (cpu, gpu or tpu)."""

    run: RunDir
    number: int
    accelerator: str


class Starter(Protocol):
    """What the supervisor asks. Everything a starter knows stands in files, but for the children it has itself."""

    def claim(self, attempt: Attempt) -> Claim:
        """Takes the devices of an attempt; to be left once its trainer has been started, which then has them until it is gone. Nobody has said
        yet that it starts: whoever is to start the trainers of this run next must be able to tell whether it came to that.

        Raises:
            DeviceLockError: locks cannot be kept on this host.
        """

    def start(self, attempt: Attempt, claim: Claim) -> None:
        """Brings a trainer to life on the devices of the claim. It goes on without its starter. Raises OSError."""

    def is_alone(self, attempt: Attempt) -> bool:
        """Whether nobody else of its home may train on that kind of accelerator while this attempt does."""

    def alive(self, attempt: Attempt) -> bool:
        """Whether it trains, or may still do so."""

    def never_began(self, attempt: Attempt) -> bool:
        """Whether it surely has no trainer, will have none, and nothing is there that one has done: somebody was ended between his word that
        it starts and the start. False where that cannot be known.
        """

    def stop(self, attempt: Attempt, grace_seconds: float) -> bool:
        """Asks it to save and end, and ends it by force when it has been asked for longer than that: whether it came to that. May be
        called at each tick."""

    def end(self, attempt: Attempt) -> None:
        """Ends it by force, at once."""

    def bury(self, attempt: Attempt) -> str:
        """Ends what a trainer that is gone has left running; what is known of how it ended, such as "killed by signal 9", or ""."""

    def present(self, runs: Path) -> list[Attempt]:
        """Attempts of runs right below this folder that have processes, whoever has started them, and however the runs are."""

    def held(self, live: Iterable[str]) -> set[str]:
        """Accelerators of trainers that have not quite ended; `live`: ids of the runs that wait or train."""
